import AppGroup
import Foundation
import SystemCalls
import Terminals
import WatchConnectivity

/// The processes of a story, and the directory that they share.
final class StoryCast {
  private let stage: Stage
  private let program: String
  /// Removed at the end, with everything that the processes may leave in it.
  private let place: URL
  /// The container's directory.
  let directory: URL
  private var sides: [WCSession.Role: StorySide] = [:]
  private var all: [StorySide] = []

  init(
    _ stage: Stage, program: String, in place: URL = FileManager.default.temporaryDirectory
  ) throws {
    self.stage = stage
    self.program = program
    self.place = place.appendingPathComponent("cinematime-\(UUID().uuidString)")
    directory = self.place.appendingPathComponent("container")
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  func start(_ role: WCSession.Role, endsAfterTransfer: Bool = false) throws -> StorySide {
    let arguments = ["--container", directory.path, role.rawValue]
    try stage.act(role.rawValue, "$ cinematime \(role.rawValue)")
    // The user's settings are for another container.
    let environment = Program.environment(
      with: ["TMPDIR=" + place.path] + (endsAfterTransfer ? [EndAfterTransfer.variable + "=1"] : [])
    ).filter { !$0.hasPrefix("WORMHOLE_") }
    let side = StorySide(
      stage, role, try LineProcess(program, arguments, environment: environment))
    sides[role] = side
    all.append(side)
    try side.waitUntilActive()
    return side
  }

  func side(_ role: WCSession.Role) throws -> StorySide {
    guard let side = sides[role] else {
      throw LineProcess.Failure(description: "no \(role.rawValue) runs")
    }
    return side
  }

  /// Gives both sides a command at once.
  func both(_ command: String) throws -> [String] {
    let sides = try [side(.phone), side(.watch)]
    for side in sides { try side.send(command) }
    return try sides.map { try $0.receive() }
  }

  func kill(_ role: WCSession.Role) throws {
    try side(role).end()
    sides[role] = nil
  }

  func quit(_ role: WCSession.Role) throws {
    try side(role).quit()
    sides[role] = nil
  }

  /// Returns whether a phone runs that this story has not started.
  func isPhoneInBackground() throws -> Bool {
    let members = try SharedContainer(url: directory).own.presence("peer/phone").members()
    return members.contains { member in !all.contains { $0.processID == member.processID } }
  }

  /// Returns the obstacles that remain after a sweep of the dead processes' leftovers, as `wormhole
  /// doctor` lists them.
  func leftovers() throws -> [String] {
    let container = try SharedContainer(url: directory)
    _ = try container.sweep()
    let report = try container.report()
    return report.leases.map { "the lease of \($0.identifier)" }
      + report.leftovers.map { "\($0)" } + report.failures.map { "\($0)" }
  }

  /// Ends all processes that still run, even the phone that was woken, and removes the directory.
  func end() {
    do {
      for side in all { try side.end() }
      for member in try SharedContainer(url: directory).own.presence("peer/phone").members() {
        try Program.send(.kill, to: member.processID)
      }
      try FileManager.default.removeItem(at: place)
    } catch {
      FileHandle.standardError.write(Data("cinematime: \(place.path) is left: \(error)\n".utf8))
    }
  }
}
