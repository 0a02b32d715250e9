import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

/// A container with a peer "p" that others start. Started programs end with the scene, before its
/// directory is removed, because a presence would create it again.
final class LaunchScene: Sendable {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let presence: Presence

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    presence = container.own.presence(PeerNames.presence("p"))
  }

  deinit {
    do {
      let last = try LaunchBook("p", container).read().start
      let noted = last.flatMap { $0.isProgram ? [$0.process] : nil } ?? []
      for process in try programs() + noted where process.status != nil {
        try Program.send(.kill, to: process.processID)
        try eventually("a program has ended") { process.status?.isDead ?? true }
      }
    } catch {
      print("cannot end what was started in \(directory.path): \(error)")
    }
  }

  func participant() throws -> Participant { try Participant(directory.path) }

  /// Registers a participant as the peer's program; see `LaunchVerbs` for its manners.
  func register(
    _ manner: String, for occasions: PeerLaunch.Occasions = .request, budget: Int? = nil
  ) throws {
    try register(
      program: BuiltProgram.path("participant"), [directory.path, "launched", "p", manner],
      for: occasions, budget: budget)
  }

  func register(
    program: String, _ arguments: [String] = [], for occasions: PeerLaunch.Occasions = .request,
    budget: Int? = nil
  ) throws {
    try PeerLaunch.Registry(in: container).set(
      PeerLaunch(
        program: program, arguments: arguments, occasions: occasions, budgetPerDay: budget),
      for: "p")
  }

  /// Returns the number of started programs, from their own reports.
  func started() throws -> Int { try programs().count }

  private func programs() throws -> [ProcessIdentity] {
    (try container.value("launched").read()?.arrayValue ?? []).compactMap { item in
      guard let id = item["pid"]?.intValue, let ticks = item["started"]?.uint64Value else {
        return nil
      }
      return ProcessIdentity(
        processID: Int32(id), startTicks: ticks, namespace: ProcessIdentity.current.namespace)
    }
  }

  /// Returns the processes that are, or are about to become, the peer's program. They are visible
  /// as soon as they are started, before they can report themselves.
  func running() throws -> [Int32] {
    let words = Array("\0\(directory.path)\0launched\0".utf8)
    let table = try FileDescriptor.open("/proc", [.readOnly, .directory])
    return try table.entries().compactMap { Int32($0.name.text) }.filter { process in
      do throws(Errno) {
        let file = try FileDescriptor.open("/proc/\(process)/cmdline", .readOnly)
        let line = try file.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
        return line.indices.contains { line[$0...].starts(with: words) }
      } catch {
        // Ended meanwhile.
        return false
      }
    }
  }

  /// Returns the active processes.
  func active() throws -> [Int32] { try presence.members().map(\.processID) }

  func launch(
    for occasion: PeerLaunch.Occasions = .request, within seconds: Double = 20
  ) throws -> Bool {
    try Launcher.launch("p", for: occasion, in: container, until: .now + .seconds(seconds))
  }

  /// Ends all active processes, and waits until there are none.
  func killActive() throws {
    for process in try active() { try Program.send(.kill, to: process) }
    try eventually("nobody is active") { try active().isEmpty }
  }

  func makePrivate() {
    do {
      try FileDescriptor.open(directory.path, [.readOnly, .directory]).setPermissions(0o700)
    } catch {
      print("cannot change \(directory.path): \(error)")
    }
  }
}
