import Foundation

/// The interface without a screen: one command per line, and plain lines as answers.
@MainActor
enum CommandLoop {
  static func begin() {
    Thread.detachNewThread {
      while let line = readLine() {
        DispatchQueue.main.async { run(line) }
      }
      DispatchQueue.main.async { exit(0) }
    }
  }

  private static func run(_ line: String) {
    let words = line.split(separator: " ").map(String.init)
    guard let verb = words.first else { return }
    do {
      guard let lines = try Commands.answer(verb, words.dropFirst().joined(separator: " ")) else {
        exit(0)
      }
      // One write, so that an answer is never torn.
      FileHandle.standardOutput.write(Data((lines.joined(separator: "\n") + "\n").utf8))
    } catch {
      FileHandle.standardOutput.write(Data("error: \(error)\n".utf8))
    }
  }
}
