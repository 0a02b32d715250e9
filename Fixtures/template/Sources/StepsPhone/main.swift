import Foundation

// The screen of the phone on Linux: lines. A number on its input sends that many steps.
let phone = Phone { FileHandle.standardOutput.write(Data("\($0)\n".utf8)) }
phone.start()
while let line = readLine() {
  if let steps = Int(line) { phone.send(steps) }
}
