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
