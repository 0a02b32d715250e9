import Dispatch
import Synchronization
import WormholeSystem
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

/// A second process of this program that executes one command per line. It is killed when this value
/// is released, and ends by itself when its pipe is closed.
final class Worker {
  let process: LineProcess

  /// Starts a worker and waits until it is ready.
  ///
  /// - Parameter job: One of `jobs`.
  init(_ job: String, _ arguments: [String]) throws {
    process = try LineProcess(
      Program.executablePath(), ["worker", job] + arguments, readsErrors: false)
    _ = try answer()
  }

  private func answer() throws -> [Double] {
    let line = try process.line(until: .now + .seconds(120))
    return line.split(separator: " ").compactMap { Double($0) }
  }

  func ask(_ line: String) throws -> [Double] {
    try process.tell(line)
    return try answer()
  }

  /// Gives workers a command at once; each answers how often it did its work.
  ///
  /// - Returns: Each time's share of the whole in nanoseconds, and the answers.
  static func race(
    _ workers: some Sequence<Worker>, _ line: String
  ) throws -> (time: Double, counts: [Double]) {
    var counts: [Double] = []
    let time = try nanosecondsPerRun {
      for worker in workers { try worker.process.tell(line) }
      counts = try workers.flatMap { try $0.answer() }
    }
    return (time / counts.reduce(0, +), counts)
  }
}

/// The other side: the program when started as a worker.
extension Worker {
  /// The jobs of workers, whose first argument is a directory or a socket.
  private static let jobs: [String: @Sendable ([String]) throws -> Void] = [
    // Increments a value for a while on command; ours and raw.
    "increment": { try UpdateRows.serve($0[0], name: $0[1]) },
    "increment-raw": { try UpdateRows.serveRaw($0[0], name: $0[1]) },
    // Answers each "ping" with a "pong" of the same number, for each kind of listener.
    "echo": { try LatencyRows.echo($0[0], $0[1]) },
    // Observes many names and reports the cost.
    "observe": { try ObserverRows.serve($0[0], count: Int($0[1]) ?? 0) },
    // Is present until it is killed; ours and raw.
    "present": { try PresenceRows.present($0[0]) },
    "present-raw": { try PresenceRows.presentRaw($0[0]) },
    // Answers requests; ours, and raw.
    "answer": { try RequestRows.answer($0[0], local: $0.dropFirst().first) },
    "answer-raw": { try RequestRows.answerRaw($0[0]) },
    // Sends durable entries on command.
    "send-durable": { try QueueRows.send($0[0], as: $0[1]) },
    // Does an operation that is counted.
    "count": { try CountRows.count($0[0], $0.dropFirst().first ?? "") },
    // Presents files.
    "present-files": { try CoordinationRows.present($0[0]) },
  ]

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 2, let job = jobs[arguments[0]] else {
      throw Misuse("a worker is started by the program itself only")
    }
    try job(Array(arguments.dropFirst()))
  }

  /// Reports that it is ready, then repeats an operation until standard input ends.
  static func repeatUntilEnd(_ operation: () throws -> Void) throws -> Never {
    Terminal.print("ready")
    // The main thread waits for the other side, so another thread waits for the end.
    try startThread(name: "end of input") {
      while readLine() != nil {}
      Program.exit(0)
    }
    while true { try operation() }
  }

  /// Reports that it is ready, then answers lines until standard input ends.
  static func serve(_ answer: (String) throws -> String = { _ in "" }) throws {
    Terminal.print("ready")
    while let line = readLine() { Terminal.print(try answer(line)) }
  }
}

/// Runs a listener's code, which has no caller for its errors.
func orDie(_ body: () throws -> Void) {
  do {
    try body()
  } catch {
    Terminal.say("benchmarks: \(error)")
    Program.exit(1)
  }
}

/// The last thing that an observer was called with, and when.
final class Heard<Element: Sendable>: Sendable {
  private let last = Mutex<(element: Element, at: ContinuousClock.Instant)?>(nil)
  private let news = DispatchSemaphore(value: 0)

  func note(_ element: Element) {
    last.withLock { $0 = (element, .now) }
    news.signal()
  }

  /// - Returns: The time of the call with the awaited element.
  @discardableResult
  func wait(for isWanted: (Element) -> Bool) throws -> ContinuousClock.Instant {
    while true {
      if let (element, time) = last.withLock({ $0 }), isWanted(element) { return time }
      guard news.wait(timeout: .now() + .seconds(30)) == .success else {
        throw Failure(description: "the observer was not notified")
      }
    }
  }
}
