import Dispatch
import Synchronization
import WormholeSystem

/// Ends the program when the file system that it uses does not answer.
///
/// A call to such a file system (of a network whose server is gone, or of a program that hangs)
/// cannot be cancelled: its thread waits until there is an answer. So another thread measures the
/// time. When the command's time has passed, that thread asks the file system; without an answer it
/// reports that and ends the program. With an answer the command has another reason to take longer,
/// and the thread asks again later.
final class AnswerWatch: Sendable {
  private struct State {
    /// The number of the user's running programs, which may take any time.
    var suspensions = 0
    var hasTimeout = false
    /// Whether a look is under way that may take longer than that, and changes nothing.
    var looks = false
    var isOver = false
  }

  /// The time of a command without a timeout, and the time between two questions.
  static let patience: Duration = .seconds(10)
  /// The time in which a command ends by itself after its deadline.
  private static let grace: Duration = .milliseconds(500)
  /// How long the file system may take to answer.
  private static let answerTime = DispatchTimeInterval.seconds(1)

  private let state = Mutex(State())
  private let end: @Sendable (ExitStatus) -> Void

  /// - Parameter end: ends the program; called on another thread.
  init(end: @escaping @Sendable (ExitStatus) -> Void) { self.end = end }

  /// Begins to measure the time for a path on the file system that has to answer. `report` gets the
  /// sentence with the reason for the end.
  func begin(path: String, timeout: Duration?, report: @escaping @Sendable (String) -> Void) {
    let first = ContinuousClock.now + (timeout.map { $0 + Self.grace } ?? Self.patience)
    state.withLock { $0.hasTimeout = timeout != nil }
    // Without a thread the command waits as long as the file system makes it wait.
    _ = Self.onThread("wormhole.clock") { [self] in
      var next = first
      repeat {
        pauseThread(ContinuousClock.now.duration(to: next))
        next = .now + Self.patience
      } while !state.withLock(\.isOver) && !isLooking
        && (isSuspended || answers(path) || isSuspended)
      guard !state.withLock(\.isOver) else { return }
      if isLooking {
        report("cannot look at everything in this time; give it more with --timeout")
        return end(.deadline)
      }
      report(
        "the file system holding \(path) is not responding; fix or stop whatever serves it, "
          + "and try again")
      end(timeout == nil ? .inputOutput : .deadline)
    }
  }

  /// Ends the program after some time, whatever it is doing then.
  func endSilently(after time: Duration) {
    let hasThread = Self.onThread("wormhole.clock") { [end] in
      pauseThread(time)
      end(.no)
    }
    // Without a thread nothing may take long.
    if !hasThread { end(.no) }
  }

  /// - Returns: whether there is a thread.
  private static func onThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
    // The callers know what follows.
    (try? startThread(name: name, body)) != nil
  }

  /// From now on the command only listens: without a timeout, for any length of time.
  func beginListening() { state.withLock { $0.isOver = !$0.hasTimeout } }

  /// Does something that only reads, perhaps a million files: it may end at the command's deadline.
  func looking<Result>(_ body: () throws -> Result) rethrows -> Result {
    state.withLock { $0.looks = $0.hasTimeout }
    defer { state.withLock { $0.looks = false } }
    return try body()
  }

  private var isLooking: Bool { state.withLock(\.looks) }

  /// Runs the user's program, which may take any time: it may rely on this process's locks and
  /// roles, so this process does not end meanwhile.
  func suspended<Result>(_ body: () throws -> Result) rethrows -> Result {
    state.withLock { $0.suspensions += 1 }
    defer { state.withLock { $0.suspensions -= 1 } }
    return try body()
  }

  private var isSuspended: Bool { state.withLock { $0.suspensions > 0 } }

  // Asks for the file, and for its directory, because the file may not exist.
  private func answers(_ path: String) -> Bool {
    let answer = DispatchSemaphore(value: 0)
    let hasThread = Self.onThread("wormhole.ask") {
      for file in [path, path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."] {
        // An error is an answer.
        _ = try? FileDescriptor.open(file, .pathOnly).fileSystem()
      }
      answer.signal()
    }
    // Without a thread nothing is known about the file system, so the program continues.
    return !hasThread || answer.wait(timeout: .now() + Self.answerTime) == .success
  }
}

/// The files that a process may still open.
enum FreeDescriptors {
  /// The descriptors that a command and the dispatch library need at once. That library ends the
  /// process with SIGILL if it gets none.
  private static let needed = 12
  /// As many as this are enough for every command's own files and for the dispatch library.
  private static let plenty = 40

  /// Checks that there are enough; costs two system calls, unless hundreds are open.
  ///
  /// - Parameter keepsSomeForTimers: whether the dispatch library opens its own now if they are few,
  ///   because the command needs its timers when its files may have used up the rest.
  static func require(toUse path: String, keepsSomeForTimers: Bool) throws(CommandError) {
    let free = Program.freeDescriptors(atMost: plenty)
    guard free >= needed else {
      throw CommandError(
        cannot: "use \(path)",
        because: "\(Errno.tooManyOpenFiles): this process may open \(free) more, and needs "
          + "\(needed); raise the limit (ulimit -n 16) or close files")
    }
    if keepsSomeForTimers, free < plenty { prepareTimers() }
  }

  // The first timer makes the library open everything that it keeps open.
  private static func prepareTimers() {
    // Without a thread, the call that needs one reports it.
    guard (try? ThreadShortage.ruleOut()) != nil else { return }
    let hasFired = DispatchSemaphore(value: 0)
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { hasFired.signal() }
    hasFired.wait()
  }
}
