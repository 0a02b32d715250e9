import Foundation

// The screen of the watch on Linux: lines. Any line on its input is a tap.
let watch = Watch { FileHandle.standardOutput.write(Data("\($0)\n".utf8)) }
watch.start()
while readLine() != nil { watch.confirm() }
