import WormholeSystem
import WormholeWorkshop

/// A second process of this program that executes one command per line. It is killed when this value
/// is released, and ends by itself when its pipe is closed.
final class Worker {
  private let process: LineProcess

  /// Starts a worker and waits until it is ready.
  ///
  /// - Parameter job: One of `jobs`.
  init(_ job: String, _ arguments: [String]) throws {
    process = try LineProcess(
      Program.executablePath(), ["worker", job] + arguments, readsErrors: false)
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

/// The other side: the program when it was started as a worker.
extension Worker {
  /// The jobs of workers, whose first argument is a directory or a socket.
  private static let jobs: [String: @Sendable ([String]) throws -> Void] = [
    // Increments a value for a while on command; ours and raw.
    "increment": { try UpdateRows.serve($0[0], name: $0[1]) },
    "increment-raw": { try UpdateRows.serveRaw($0[0], name: $0[1]) },
    // Answers each "ping" with a "pong" of the same number, for each kind of listener; ours and raw.
    "echo": { try LatencyRows.echo($0[0], $0[1]) },
    "echo-raw": { try LatencyRows.echoRaw($0[0], $0[1]) },
    // Observes many names and reports the cost.
    "observe": { try ObserverRows.serve($0[0], count: Int($0[1]) ?? 0) },
    // Is present until it is killed; ours and raw.
    "present": { try PresenceRows.present($0[0]) },
    "present-raw": { try PresenceRows.presentRaw($0[0]) },
    // Answers requests; ours, raw, and over D-Bus.
    "answer": { try RequestRows.answer($0[0], local: $0.dropFirst().first) },
    "answer-raw": { try RequestRows.answerRaw($0[0]) },
    "answer-bus": { try RequestRows.answerOnBus($0[0]) },
    // Sends durable entries on command.
    "send-durable": { try QueueRows.send($0[0], as: $0[1]) },
    // Presents files.
    "present-files": { try CoordinationRows.present($0[0]) },
  ]

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 2, let job = jobs[arguments[0]] else {
      throw Options.Misuse(description: "a worker is started by the program itself only")
    }
    try job(Array(arguments.dropFirst()))
  }

  /// Reports that it is ready, then repeats an operation until standard input ends.
  static func repeatUntilEnd(_ operation: () throws -> Void) throws -> Never {
    Output.line("ready")
    // The main thread waits for the other side, so another thread waits for the end.
    try startThread(name: "end of input") {
      while readLine() != nil {}
      Program.exit(0)
    }
    while true { try operation() }
  }

  /// Reports that it is ready, then answers lines until standard input ends.
  static func serve(_ answer: ([Substring]) throws -> String) throws {
    Output.line("ready")
    while let line = readLine() { Output.line(try answer(line.split(separator: " "))) }
  }
}
