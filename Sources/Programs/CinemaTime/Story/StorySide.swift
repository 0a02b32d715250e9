import SystemCalls
import Terminals
import WatchConnectivity

/// One side of a story: receives commands, and separates its answers from its notices.
final class StorySide {
  /// The limit of every wait, so that a fault shows as a failed story and not as a hanging
  /// terminal.
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
        throw LineProcess.Failure(description: "the \(role.rawValue) printed unexpectedly: \(line)")
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
  func wait(
    for command: String, toShow text: String, isShown: Bool = true
  ) throws -> Duration {
    let start = ContinuousClock.now
    let deadline = deadline
    while true {
      let lines = try answer(lines: command)
      if lines.contains(where: { $0.contains(text) }) == isShown {
        return ContinuousClock.now - start
      }
      guard ContinuousClock.now < deadline else {
        throw LineProcess.Failure(
          description:
            "the \(role.rawValue) \(isShown ? "did not show" : "shows") '\(text)', but \(lines)")
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
