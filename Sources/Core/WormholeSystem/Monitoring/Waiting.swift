import Synchronization

/// A wait for other processes, in steps. A step never sleeps: it returns the condition to wait for,
/// and one of the two drivers below waits. So one implementation serves callers that block a thread
/// and tasks that suspend.
///
/// Only one thread at a time takes a step.
package protocol Waiting<Outcome>: AnyObject, SendableMetatype {
  associatedtype Outcome: Sendable

  /// Continues as far as possible without waiting. May call the file system.
  func step() throws -> WaitingStep<Outcome>

  /// Continues like `step`, on the thread that raised the latch, perhaps the monitor's: only with
  /// calls that never wait, or not at all.
  ///
  /// - Returns: Nil if `step` has to be taken, on a thread that may block.
  func promptStep() -> WaitingStep<Outcome>?
}

extension Waiting {
  package func promptStep() -> WaitingStep<Outcome>? { nil }
}

/// A wait whose steps are a closure.
package final class StepwiseWait<Outcome: Sendable>: Waiting {
  private let body: () throws -> WaitingStep<Outcome>

  package init(_ body: @escaping () throws -> WaitingStep<Outcome>) { self.body = body }

  package func step() throws -> WaitingStep<Outcome> { try body() }
}

extension ContinuousClock.Instant? {
  /// Whether there is a deadline, and it has passed.
  package var hasPassed: Bool { map { ContinuousClock.now >= $0 } ?? false }
}

/// The state of a wait.
package enum WaitingStep<Outcome> {
  case done(Outcome)
  /// There is nothing to do until the latch is raised or the instant, if there is one, is reached.
  case wait(for: WakeLatch, until: ContinuousClock.Instant?)
  /// Try again after a pause that is too short to give up the thread.
  case spin(Duration)
  /// The same, but the pause ends when another process adds to a counter.
  case handOver(FileCounter, seen: UInt32, Duration)

  /// Something has changed: try again at once.
  package static var again: Self { .spin(.zero) }
}

extension WaitingStep: Sendable where Outcome: Sendable {}

extension WaitingStep {
  /// Returns the outcome, or nil after blocking the calling thread until the next step is due.
  @inlinable
  package func block() -> Outcome? {
    switch self {
    case .done(let outcome): return outcome
    case .wait(let latch, let deadline): latch.block(until: deadline)
    case .spin(let pause): if pause > .zero { pauseThread(pause) }
    case .handOver(let counter, let seen, let pause):
      if !counter.wait(unlessChangedFrom: seen, atMost: pause) { pauseThread(pause) }
    }
    return nil
  }

  /// Returns the outcome and continues, or returns this step, which has none, for an enclosing
  /// wait.
  @inlinable
  package func then<Next>(
    _ next: (Outcome) throws -> WaitingStep<Next>
  ) rethrows -> WaitingStep<Next> {
    switch self {
    case .done(let outcome): try next(outcome)
    case .wait(let latch, let deadline): .wait(for: latch, until: deadline)
    case .spin(let pause): .spin(pause)
    case .handOver(let counter, let seen, let pause): .handOver(counter, seen: seen, pause)
    }
  }
}

extension Waiting {
  /// Takes all steps, and blocks the calling thread between them.
  package func run() throws -> Outcome {
    while true {
      if let outcome = try step().block() { return outcome }
    }
  }
}

/// Takes all steps from a task: each step runs on a thread that may block, and the task is suspended
/// until the last one. Cancelling the task ends a wait with `CancellationError`. The work is released
/// before this function returns.
///
/// The thread that raises a latch takes the next step itself if that step never waits. Otherwise it
/// hands the step to such a thread. The last step resumes the task. So one or two threads are
/// woken, however often it waits.
///
/// - Parameters:
///   - latch: The latch to wait for before the first step; nil to begin at once.
///   - deadline: How long to wait for it.
package func runSuspending<Outcome: Sendable>(
  after latch: WakeLatch? = nil, until deadline: ContinuousClock.Instant? = nil,
  _ make: @escaping @Sendable () -> sending any Waiting<Outcome>
) async throws -> Outcome {
  let wait = SuspendedWait(make)
  return try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { wait.begin(after: latch, until: deadline, $0) }
  } onCancel: {
    wait.cancel()
  }
}

/// A wait of a task: work that is handed from thread to thread, one step at a time.
private final class SuspendedWait<Outcome: Sendable>: Sendable {
  typealias Continuation = CheckedContinuation<Outcome, any Error>

  private struct Cancellation {
    var isCancelled = false
    /// The latch that it waits for, or the last one.
    var latch: WakeLatch?
  }

  /// Nil after its release. The lock is never contended; it shows the compiler that one thread at a
  /// time has the work.
  private let work: Mutex<(any Waiting<Outcome>)?>
  private let cancellation = Mutex(Cancellation())

  init(_ make: @Sendable () -> sending any Waiting<Outcome>) {
    work = Mutex(make())
  }

  func begin(
    after latch: WakeLatch?, until deadline: ContinuousClock.Instant?, _ task: Continuation
  ) {
    if let latch, !Timers.areStalled {
      wait(for: latch, until: deadline, task)
    } else {
      goOn(task)
    }
  }

  /// Ends the current wait or the next one.
  func cancel() {
    let latch = cancellation.withLock { cancellation in
      cancellation.isCancelled = true
      return cancellation.latch
    }
    latch?.raise()
  }

  private func goOn(_ task: Continuation) {
    do throws(ThreadShortage) {
      try Blocking.start { [self] in takeSteps(task) }
    } catch {
      end(task, error)
    }
  }

  private func takeSteps(_ task: Continuation) {
    do {
      let next = try step()
      switch next {
      case .done(let outcome): task.resume(returning: outcome)
      // No thread would call a closure when the latch is raised.
      case .wait where Timers.areStalled:
        _ = next.block()
        goOn(task)
      case .wait(let latch, let deadline): wait(for: latch, until: deadline, task)
      case .spin, .handOver: goOn(task)
      }
    } catch {
      end(task, error)
    }
  }

  private func end(_ task: Continuation, _ error: any Error) {
    // Here, because its release may call the file system.
    work.withLock { $0 = nil }
    task.resume(throwing: error)
  }

  private func wait(
    for latch: WakeLatch, until deadline: ContinuousClock.Instant?, _ task: Continuation
  ) {
    // Before the wait, because it may end at once, and the next one be for another latch.
    let isCancelled = cancellation.withLock { cancellation in
      cancellation.latch = latch
      return cancellation.isCancelled
    }
    if isCancelled || !latch.wake(until: deadline, { [self] in awake(task) }) { goOn(task) }
  }

  /// Continues on the thread that has raised the latch.
  private func awake(_ task: Continuation) {
    guard !cancellation.withLock(\.isCancelled), let step = work.withLock({ $0?.promptStep() })
    else { return goOn(task) }
    switch step {
    case .done(let outcome):
      work.withLock { $0 = nil }
      task.resume(returning: outcome)
    case .wait(let latch, let deadline): wait(for: latch, until: deadline, task)
    case .spin, .handOver: goOn(task)
    }
  }

  /// Takes the next step and its short pauses, because another thread would cost more than they
  /// last. The last step releases the work.
  private func step() throws -> WaitingStep<Outcome> {
    try work.withLock { work in
      while true {
        // Before each one, because some waits never come to an end of their own. No step follows the release.
        guard !cancellation.withLock(\.isCancelled), let step = try work?.step() else {
          throw CancellationError()
        }
        switch step {
        case .spin, .handOver: _ = step.block()
        case .wait: return step
        case .done:
          work = nil
          return step
        }
      }
    }
  }
}
