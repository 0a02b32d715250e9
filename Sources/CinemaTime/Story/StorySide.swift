import SystemCalls
import Terminals
import WatchConnectivity

/// One side of a story: gets commands, and its answers and notices are told apart.
final class StorySide {
  /// Bounds every wait, so that a fault shows as a failed story and not as a terminal that hangs.
  private static let patience: Duration = .seconds(5)

  private let stage: Stage
  private let role: WCSession.Role
  private let process: LineProcess
  private var notices: [String] = []

  init(_ stage: Stage, _ role: WCSession.Role, _ process: LineProcess) {
    self.stage = stage
    self.role = role
    self.process = process
  }

  var processID: Int32 { process.processID }

  private var deadline: ContinuousClock.Instant { .now + Self.patience }

  // MARK: Commands

  func send(_ command: String) throws { try process.tell(command) }

  /// The next line that is an answer; notices are kept.
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

  /// The lines of an answer.
  func answer(lines command: String) throws -> [String] {
    try send(command)
    // Says where the answer ends.
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

  /// So many notices that say something, in their order.
  func notices(_ text: String, count: Int) throws -> [String] {
    let deadline = deadline
    while true {
      let found = notices.filter { $0.contains(text) }
      if found.count >= count { return Array(found.prefix(count)) }
      let line = try process.line(until: deadline)
      guard line.hasPrefix("\(role.rawValue): ") else {
        throw LineProcess.Failure(description: "the \(role.rawValue) said '\(line)' unasked")
      }
      notices.append(line)
    }
  }

  /// All notices until now that say something.
  func allNotices(_ text: String) throws -> [String] {
    _ = try answer(lines: "state")
    return notices.filter { $0.contains(text) }
  }

  /// Asks again until the answer shows something.
  ///
  /// - Returns: how long that took.
  func wait(for command: String, toShow text: String) throws -> Duration {
    try wait(for: command, text) { $0.contains { $0.contains(text) } }
  }

  func wait(for command: String, notToShow text: String) throws -> Duration {
    try wait(for: command, text) { !$0.contains { $0.contains(text) } }
  }

  private func wait(
    for command: String, _ text: String, _ isThere: ([String]) -> Bool
  ) throws -> Duration {
    let start = ContinuousClock.now
    let deadline = deadline
    while true {
      let lines = try answer(lines: command)
      if isThere(lines) { return ContinuousClock.now - start }
      guard ContinuousClock.now < deadline else {
        throw LineProcess.Failure(
          description: "the \(role.rawValue) did not come to '\(text)'; it shows \(lines)")
      }
      pauseThread(.milliseconds(2))
    }
  }

  // MARK: Its life

  func stop() throws {
    try process.send(.stop)
    try process.waitUntilStopped(until: deadline)
  }

  func resume() throws { try process.send(.continue) }

  func quit() throws {
    try send("quit")
    _ = try waitForEnd()
  }

  func waitForEnd() throws -> Termination { try process.wait(until: deadline) }

  func end() throws { try process.end() }
}
