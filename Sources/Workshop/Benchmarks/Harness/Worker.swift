import SystemCalls
import Terminals

/// A second process of this program that executes one command per line; see `WorkerMode`. It is
/// killed when this value is released, and ends by itself when its pipe is closed.
final class Worker {
  private let process: LineProcess

  /// Starts a worker and waits until it is ready.
  init(_ kind: WorkerMode.Kind, _ arguments: [String]) throws {
    process = try LineProcess(
      Program.executablePath(), ["worker", kind.rawValue] + arguments, readsErrors: false)
    _ = try answer()
  }

  func tell(_ line: String) throws(Errno) { try process.tell(line) }

  func answer() throws -> String { try process.line(until: .now + .seconds(120)) }

  func ask(_ line: String) throws -> String {
    try tell(line)
    return try answer()
  }

  /// Returns the numbers of an answer.
  func askNumbers(_ line: String) throws -> [Double] {
    try ask(line).split(separator: " ").compactMap { Double($0) }
  }

  func kill() throws { try process.send(.kill) }

  /// Waits for its end, so that it does not stay a zombie.
  func reap() throws { _ = try process.wait(until: .now + .seconds(10)) }
}
