import Synchronization
import SystemCalls

/// A wait for other processes, in steps. A step never sleeps: it returns the condition to wait for,
/// and one of the two drivers below waits. So one implementation serves callers that block a thread
/// and tasks that suspend.
///
/// Only one thread at a time takes a step.
package protocol Waiting<Outcome>: AnyObject, SendableMetatype {
  associatedtype Outcome: Sendable

  /// Continues as far as possible without waiting. May call the file system.
  func step() throws -> WaitingStep<Outcome>
}

/// The state of a wait.
package enum WaitingStep<Outcome> {
  case done(Outcome)
  /// There is nothing to do before the latch is raised or the instant comes; without an instant,
  /// before the latch is raised.
  case wait(for: WakeLatch, until: ContinuousClock.Instant?)
  /// Try again after a pause that is too short to give up the thread.
  case spin(Duration)

  /// Something has changed: try again at once.
  package static var again: Self { .spin(.zero) }
}

extension WaitingStep: Sendable where Outcome: Sendable {}

extension WaitingStep {
  /// Returns the outcome, or nil after blocking the calling thread until the next step is due.
  package func block() -> Outcome? {
    switch self {
    case .done(let outcome): return outcome
    case .wait(let latch, let deadline): latch.block(until: deadline)
    case .spin(let pause): if pause > .zero { pauseThread(pause) }
    }
    return nil
  }

  /// Returns the outcome and continues, or returns this step, which has none, for a wait that contains
  /// this one.
  package func then<Next>(
    _ next: (Outcome) throws -> WaitingStep<Next>
  ) rethrows -> WaitingStep<Next> {
    switch self {
    case .done(let outcome): try next(outcome)
    case .wait(let latch, let deadline): .wait(for: latch, until: deadline)
    case .spin(let pause): .spin(pause)
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

/// Takes all steps from a task: each step runs on a thread that may block, and the task is
/// suspended between them. Cancelling the task ends a wait with `CancellationError`. The work is
/// released before this function returns.
package func runSuspending<Work: Waiting>(
  _ make: @escaping @Sendable () -> sending Work
) async throws -> Work.Outcome {
  // One step at a time uses the work, so handing it from thread to thread is safe. The box shows
  // that to the compiler with a lock that is never contended.
  let box = WaitingBox(make)
  do {
    while true {
      try Task.checkCancellation()
      switch try await Blocking.run({ try box.step() }) {
      case .done(let outcome): return outcome
      case .wait(let latch, let deadline): await latch.suspend(until: deadline)
      case .spin: continue
      }
    }
  } catch {
    // Its release may call the file system.
    try await Blocking.run { box.release() }
    throw error
  }
}

/// A holder of work that is handed from thread to thread, one step at a time.
private final class WaitingBox<Work: Waiting>: Sendable {
  /// Nil after its release.
  private let work: Mutex<Work?>

  init(_ make: @Sendable () -> sending Work) {
    work = Mutex(make())
  }

  /// Takes the next step and its short pauses, because another thread would cost more than they
  /// last. The last step releases the work, because this thread holds this box until a moment after
  /// the task has gone on.
  func step() throws -> WaitingStep<Work.Outcome> {
    try work.withLock { work in
      while true {
        // No step follows the release.
        guard let step = try work?.step() else { throw CancellationError() }
        switch step {
        case .spin: _ = step.block()
        case .wait: return step
        case .done:
          work = nil
          return step
        }
      }
    }
  }

  func release() { work.withLock { $0 = nil } }
}
