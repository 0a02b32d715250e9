import Foundation
import WormholeTestSupport

/// Two processes of an app that was written for MMWormhole, which share a group of their own.
struct AppScene {
  static let group = "group.com.example.alarms"
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  var container: String { directory.path + "/app-groups/" + Self.group }

  func start(_ environment: String...) throws -> Participant {
    try Participant(
      "group:" + Self.group,
      environment: directory.groups + [
        "WORMHOLE_GROUP=\(Self.group)", "WORMHOLE_CONTAINER=", "TMPDIR=\(directory.path)",
      ] + environment)
  }

  /// Runs the command in the group.
  ///
  /// - Returns: What it printed, without the last line's end.
  func wormhole(_ arguments: String...) throws -> String {
    let process = Process()
    process.executableURL = URL(filePath: try BuiltProgram.path("wormhole"))
    process.arguments = arguments
    let place = try directory.groups.map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
    process.environment = Dictionary(uniqueKeysWithValues: place.map { ($0[0], $0[1]) })
      .merging(["WORMHOLE_GROUP": Self.group]) { $1 }
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return text.trimmingCharacters(in: .newlines)
  }
}

extension Participant {
  /// Executes a command of `WormholeVerbs`.
  func mm(_ command: String) throws -> String { try ask("mm-" + command) }
}
