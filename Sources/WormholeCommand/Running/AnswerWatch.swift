import Dispatch
import Synchronization
import SystemCalls

/// Ends the program when the file system that it uses does not answer.
///
/// A call to such a file system, a network's whose server is gone or that of a program that hangs,
/// cannot be cancelled: its thread waits until there is an answer. So another thread looks at the
/// clock. When the command's time has passed, it asks the file system itself; without an answer it
/// says so and ends the program. With one the command has a reason to take longer, and is looked after
/// again later.
final class AnswerWatch: Sendable {
  private struct State {
    /// How many programs of the user's are running, which may take any time.
    var suspensions = 0
    var hasTimeout = false
    var isOver = false
  }

  /// The time of a command that was given none, and the time between two looks.
  static let patience: Duration = .seconds(10)
  /// A command that ends at its own deadline need not be asked for.
  private static let grace: Duration = .milliseconds(500)
  /// How long the file system may take to answer.
  private static let answerTime = DispatchTimeInterval.seconds(1)

  private let state = Mutex(State())
  private let end: @Sendable (ExitStatus) -> Void

  /// - Parameter end: ends the program; called on another thread.
  init(end: @escaping @Sendable (ExitStatus) -> Void) { self.end = end }

  /// Begins to look at the clock.
  ///
  /// - Parameters:
  ///   - path: on the file system that has to answer.
  ///   - timeout: the command's time; nil where its user gave none.
  ///   - tell: gets the sentence that says why the program ends.
  func begin(path: String, timeout: Duration?, tell: @escaping @Sendable (String) -> Void) {
    let first = ContinuousClock.now + (timeout.map { $0 + Self.grace } ?? Self.patience)
    state.withLock { $0.hasTimeout = timeout != nil }
    do throws(Errno) {
      try startThread(name: "wormhole.clock") { [self] in
        var next = first
        repeat {
          pauseThread(ContinuousClock.now.duration(to: next))
          next = .now + Self.patience
        } while !state.withLock(\.isOver) && (isSuspended || answers(path) || isSuspended)
        guard !state.withLock(\.isOver) else { return }
        tell(
          "cannot go on: the file system of \(path) does not answer; "
            + "mend or end what serves it, and try again")
        end(timeout == nil ? .inputOutput : .deadline)
      }
    } catch {
      // Without a thread the command waits as long as the file system lets it.
      return
    }
  }

  /// From now on the command only listens: without a timeout, as long as its user likes.
  func beginListening() { state.withLock { $0.isOver = !$0.hasTimeout } }

  /// Runs what may take any time: the program does not end while a program of its user's runs, which
  /// may rely on what it holds.
  func suspended<Result>(_ body: () throws -> Result) rethrows -> Result {
    state.withLock { $0.suspensions += 1 }
    defer { state.withLock { $0.suspensions -= 1 } }
    return try body()
  }

  private var isSuspended: Bool { state.withLock { $0.suspensions > 0 } }

  // The file, and the directory that it is in, should it not be there.
  private func answers(_ path: String) -> Bool {
    let answer = DispatchSemaphore(value: 0)
    do throws(Errno) {
      try startThread(name: "wormhole.ask") {
        Self.ask(path)
        Self.ask(path.lastIndex(of: "/").map { String(path[...$0]) } ?? ".")
        answer.signal()
      }
    } catch {
      // Nobody is there to ask it: then it is not known to be silent.
      return true
    }
    return answer.wait(timeout: .now() + Self.answerTime) == .success
  }

  private static func ask(_ path: String) {
    do throws(Errno) {
      _ = try FileDescriptor.open(path, .pathOnly).fileSystem()
    } catch {
      // An error is an answer.
      return
    }
  }
}
