import ConnectivityTesting
import WatchConnectivity
import WormholeTerminals
import WormholeToolkit

/// One side of a story: receives commands, and separates its answers from its notices.
final class StorySide {
  /// The usual limit of every wait, so that a fault shows as a failed story, not as a hanging
  /// terminal.
  static let patience: Duration = .seconds(30)

  let role: WCSession.Role
  private let stage: Stage
  let process: SideProcess
  var patience = StorySide.patience

  init(_ process: SideProcess, as role: WCSession.Role, on stage: Stage) {
    self.stage = stage
    self.role = role
    self.process = process
  }

  private var deadline: ContinuousClock.Instant { .now + patience }

  // MARK: Commands

  func send(_ command: String) throws { try process.tell(command) }

  /// Returns the next line that is an answer, not a notice.
  func receive() throws -> String {
    let deadline = deadline
    while true {
      let line = try process.line(until: deadline)
      if !isNotice(line) { return line }
    }
  }

  private func isNotice(_ line: String) -> Bool { line.hasPrefix("\(role.rawValue): ") }

  /// Gives a command, and shows it on the stage; returns the first line of the answer.
  func answer(_ command: String) throws -> String {
    let lines = try answer(lines: command)
    try stage.act(role.rawValue, "> \(command)")
    return lines.first ?? ""
  }

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

  func notices(_ text: String, count: Int) throws -> [String] {
    let deadline = deadline
    while notices(text).count < count { _ = try process.line(until: deadline) }
    return Array(notices(text).prefix(count))
  }

  func notices(_ text: String) -> [String] {
    process.output.filter { isNotice($0) && $0.contains(text) }
  }

  /// Repeats a command until the answer contains a text, or, if `isShown` is false, does not;
  /// returns how long that took.
  func wait(for command: String, toShow text: String, isShown: Bool = true) throws -> Duration {
    let start = ContinuousClock.now
    var lines: [String] = []
    let isSo = try poll(until: deadline) {
      lines = try answer(lines: command)
      return lines.contains { $0.contains(text) } == isShown
    }
    guard isSo else {
      throw LineProcess.Failure(
        description:
          "the \(role.rawValue) \(isShown ? "did not show" : "shows") '\(text)', but \(lines)")
    }
    return ContinuousClock.now - start
  }

  func quit() throws {
    try send("quit")
    _ = try process.waitForEnd(until: deadline)
  }
}
