import Foundation
import WormholeTestSupport

/// Foreign programs as independent checks.
enum Python {
  /// Returns the output of a script; nil, with a reason in the log, if there is no Python.
  static func run(_ script: String, input: String) throws -> String? {
    try ForeignProgram.run("python3", ["-c", script], input: input)?.output
  }
}

enum ForeignProgram {
  struct Result {
    let status: Int32
    let output: String
  }

  /// Runs a program of the search path to its end; nil if it is not installed.
  static func run(_ name: String, _ arguments: [String], input: String = "") throws -> Result? {
    guard let path = path(of: name) else {
      print("skipped: \(name) is not installed")
      return nil
    }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    // A file and not a pipe, because both sides may be larger than a pipe holds.
    let inputFile = URL(fileURLWithPath: directory.path + "/input")
    try Data(input.utf8).write(to: inputFile)
    process.standardInput = try FileHandle(forReadingFrom: inputFile)
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus, output: String(decoding: bytes, as: UTF8.self))
  }

  private static func path(of name: String) -> String? {
    let directories = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    return directories.split(separator: ":").map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
