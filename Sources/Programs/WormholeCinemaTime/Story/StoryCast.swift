import ConnectivityTesting
import Foundation
import WatchConnectivity
import Wormhole
import WormholeInspection
import WormholeSystem
import WormholeTerminals
import WormholeToolkit

/// The processes of a story, and the container that they share.
final class StoryCast {
  private let stage: Stage
  private let program: String
  /// Removed at the end, with all leftovers of the processes.
  private let place: URL
  /// The container's directory; on etcd this process's own.
  let directory: URL
  let container: SharedContainer
  private var sides: [StorySide] = []

  /// - Parameter open: Makes a container of an empty directory.
  init(
    _ stage: Stage, program: String, in place: URL = FileManager.default.temporaryDirectory,
    open: (URL) throws -> SharedContainer = { try SharedContainer(url: $0) }
  ) throws {
    self.stage = stage
    self.program = program
    self.place = place.appendingPathComponent("cinematime-\(UUID().uuidString)")
    directory = self.place.appendingPathComponent("container")
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    container = try open(directory)
  }

  /// Starts the program on the container. All its leftovers are in the place.
  private func launch(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws -> SideProcess {
    let own = ["TMPDIR": place.path, "XDG_STATE_HOME": place.path + "/state"]
    return try SideProcess(
      program, ["--container", container.location] + arguments,
      environment: environment.merging(own) { $1 })
  }

  func start(_ role: WCSession.Role, endsAfterTransfer: Bool = false) throws -> StorySide {
    try stage.act(role.rawValue, "$ cinematime \(role.rawValue)")
    let process = try launch(
      [role.rawValue], environment: endsAfterTransfer ? [Connectivity.killingVariable: "1"] : [:])
    let side = StorySide(process, as: role, on: stage)
    sides.append(side)
    _ = try side.notices("session is active", count: 1)
    return side
  }

  func side(_ role: WCSession.Role) throws -> StorySide {
    guard let side = sides.last(where: { $0.role == role }) else {
      throw LineProcess.Failure(description: "no \(role.rawValue) runs")
    }
    return side
  }

  func both(_ command: String) throws -> [String] {
    let sides = try [side(.phone), side(.watch)]
    for side in sides { try side.send(command) }
    return try sides.map { try $0.receive() }
  }

  private func phones() throws -> [Int32] {
    try container.own.presence("peer/phone").members().map(\.processID)
  }

  /// Returns whether a phone runs that this story has not started.
  func isPhoneInBackground() throws -> Bool {
    try phones().contains { phone in !sides.contains { $0.process.processID == phone } }
  }

  /// Returns the obstacles that remain after a sweep of the dead processes' leftovers, as `wormhole
  /// doctor` lists them.
  func leftovers() throws -> [String] {
    _ = try container.sweep()
    let report = try container.report(ReportScope(.names))
    return report.leases.map { "the lease of \($0.identifier)" }
      + report.leftovers.map { "\($0)" } + report.failures.map { "\($0)" }
  }

  /// Ends all processes that still run, even the phone that was woken, and removes the directory.
  func end() {
    do {
      for side in sides { side.process.kill() }
      // A test's own process may play a side.
      for phone in try phones() where phone != Program.processID {
        try Program.send(.kill, to: phone)
      }
      try FileManager.default.removeItem(at: place)
    } catch {
      FileHandle.standardError.write(Data("cinematime: \(place.path) is left: \(error)\n".utf8))
    }
  }
}
