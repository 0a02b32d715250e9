import ConnectivityTesting
import Foundation
import WatchConnectivity
import Wormhole
import WormholeInspection
import WormholePeers
import WormholeSystem
import WormholeWorkshop

/// A story does not go on: a side did not do what the story waits for.
struct StoryFailure: Error, CustomStringConvertible {
  let description: String
}

/// The processes of a story, and the container that they share.
final class StoryCast {
  private let stage: Stage
  private let program: String
  /// Removed at the end, with everything that the processes may leave in it.
  private let place: URL
  /// The container's directory; on etcd this process's own.
  let directory: URL
  let container: SharedContainer
  private var sides: [WCSession.Role: StorySide] = [:]
  private var all: [StorySide] = []

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

  /// Whatever the processes leave lies in the place.
  private var environment: [String: String] {
    ["TMPDIR": place.path, "XDG_STATE_HOME": place.path + "/state"]
  }

  func start(
    _ role: WCSession.Role, watchName: String = "watch", endsAfterTransfer: Bool = false
  ) throws -> StorySide {
    let arguments = ["--container", container.location, role.rawValue, "--name", watchName]
    try stage.act(role.rawValue, "$ cinematime \(role.rawValue)")
    var environment = environment
    if endsAfterTransfer { environment[EndAfterTransfer.variable] = "1" }
    let side = StorySide(stage, role, try SideProcess(program, arguments, environment: environment))
    sides[role] = side
    all.append(side)
    try side.waitUntilActive()
    return side
  }

  func side(_ role: WCSession.Role) throws -> StorySide {
    guard let side = sides[role] else {
      throw StoryFailure(description: "no \(role.rawValue) runs")
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

  /// Hands the film that is open on the watch over to the phone, by the program that a user would start for it.
  ///
  /// - Returns: What it prints.
  func handOver() throws -> String {
    try stage.act("user", "$ cinematime continue")
    let program = try SideProcess(
      program, ["--container", container.location, "continue"], environment: environment)
    let deadline = ContinuousClock.now + StorySide.patience
    let line = try program.line(until: deadline)
    _ = try program.waitForEnd(until: deadline)
    return line
  }

  /// Waits until the phone that was started in the background has printed a text.
  func waitForPhone(toPrint text: String) throws {
    let registry = PeerLaunch.Registry(in: container)
    let deadline = ContinuousClock.now + StorySide.patience
    while true {
      let output = try registry.output(of: "phone").flatMap {
        FileManager.default.contents(atPath: $0)
      }
      let lines = String(decoding: output ?? Data(), as: UTF8.self)
      if lines.contains(text) { return }
      guard ContinuousClock.now < deadline else {
        throw StoryFailure(description: "the phone did not print '\(text)', but \(lines)")
      }
      pauseThread(.milliseconds(2))
    }
  }

  /// Returns whether a phone runs that this story has not started.
  func isPhoneInBackground() throws -> Bool {
    let members = try container.own.presence("peer/phone").members()
    return members.contains { member in !all.contains { $0.processID == member.processID } }
  }

  /// Returns the obstacles that remain after a sweep of the dead processes' leftovers, as `wormhole
  /// doctor` lists them.
  func leftovers() throws -> [String] {
    _ = try container.sweep()
    let report = try container.report()
    return report.leases.map { "the lease of \($0.identifier)" }
      + report.leftovers.map { "\($0)" } + report.failures.map { "\($0)" }
  }

  /// Ends all processes that still run, even the phone that was woken, and removes the directory.
  func end() {
    do {
      for side in all { side.end() }
      // A test's own process may play a side.
      for member in try container.own.presence("peer/phone").members()
      where member.processID != Program.processID {
        try Program.send(.kill, to: member.processID)
      }
      try FileManager.default.removeItem(at: place)
    } catch {
      FileHandle.standardError.write(Data("cinematime: \(place.path) is left: \(error)\n".utf8))
    }
  }
}

/// One side of a story: receives commands, and separates its answers from its notices.
final class StorySide {
  /// The usual limit of every wait, so that a fault shows as a failed story and not as a hanging
  /// terminal.
  static let patience: Duration = .seconds(5)

  private let stage: Stage
  private let role: WCSession.Role
  private let process: SideProcess
  private let patience: Duration
  private var notices: [String] = []

  init(
    _ stage: Stage, _ role: WCSession.Role, _ process: SideProcess,
    patience: Duration = StorySide.patience
  ) {
    self.stage = stage
    self.role = role
    self.process = process
    self.patience = patience
  }

  var processID: Int32 { process.processID }

  private var deadline: ContinuousClock.Instant { .now + patience }

  // MARK: Commands

  func send(_ command: String) throws { try process.tell(command) }

  /// Returns the next answer; keeps the notices.
  func receive() throws -> String {
    let deadline = deadline
    while true {
      let line = try process.line(until: deadline)
      guard line.hasPrefix("\(role.rawValue): ") else { return line }
      notices.append(line)
    }
  }

  /// Gives a command, and shows it with its answer.
  func answer(_ command: String) throws -> String {
    try send(command)
    let answer = try receive()
    try stage.act(role.rawValue, "> \(command)")
    return answer
  }

  /// Gives a command and returns the lines of its answer.
  func answer(lines command: String) throws -> [String] {
    try send(command)
    // Marks the end of the answer.
    try send("echo over")
    var lines: [String] = []
    while true {
      let line = try receive()
      if line == "over" { return lines }
      lines.append(line)
    }
  }

  // MARK: Waiting

  func waitUntilActive() throws { _ = try notices("session is active", count: 1) }

  /// Returns the given number of notices with a text, in their order.
  func notices(_ text: String, count: Int) throws -> [String] {
    let deadline = deadline
    while true {
      let found = notices.filter { $0.contains(text) }
      if found.count >= count { return Array(found.prefix(count)) }
      let line = try process.line(until: deadline)
      guard line.hasPrefix("\(role.rawValue): ") else {
        throw StoryFailure(description: "the \(role.rawValue) printed unexpectedly: \(line)")
      }
      notices.append(line)
    }
  }

  /// Returns all notices so far with a text.
  func allNotices(_ text: String) throws -> [String] {
    _ = try answer(lines: "state")
    return notices.filter { $0.contains(text) }
  }

  /// Repeats a command until the answer contains a text, or, if `isShown` is false, does not.
  ///
  /// - Returns: The duration of the wait.
  func wait(for command: String, toShow text: String, isShown: Bool = true) throws -> Duration {
    let start = ContinuousClock.now
    let deadline = deadline
    var pause = Duration.milliseconds(2)
    while true {
      let lines = try answer(lines: command)
      if lines.contains(where: { $0.contains(text) }) == isShown {
        return ContinuousClock.now - start
      }
      guard ContinuousClock.now < deadline else {
        throw StoryFailure(
          description:
            "the \(role.rawValue) \(isShown ? "did not show" : "shows") '\(text)', but \(lines)")
      }
      pauseThread(pause)
      // The side needs the processor for other things, too.
      pause = min(pause * 3 / 2, .milliseconds(30))
    }
  }

  // MARK: Its life

  func stop() throws { try process.stop(until: deadline) }

  func resume() throws { try process.resume() }

  func quit() throws {
    try send("quit")
    _ = try waitForEnd()
  }

  func waitForEnd() throws -> SideProcess.End { try process.waitForEnd(until: deadline) }

  func end() { process.kill() }
}
