import Synchronization

/// Work that may have to wait for other processes, and never waits itself: after each wait its next
/// step is taken. So one piece of work serves callers that block a thread and tasks that suspend.
package protocol SteppedWork<Outcome>: AnyObject, SendableMetatype {
  associatedtype Outcome: Sendable

  /// Goes on as far as possible without waiting.
  func step() throws -> StepProgress<Outcome>

  /// What is raised when it is worth looking again.
  var latch: WakeLatch? { get }
}

/// How far a piece of work has come.
package enum StepProgress<Outcome> {
  case done(Outcome)
  /// Nothing to do before the latch is raised or this moment comes.
  case wait(until: ContinuousClock.Instant)
}

extension StepProgress: Sendable where Outcome: Sendable {}

extension SteppedWork {
  /// Does the work, blocking the calling thread while others are in its way.
  package func run() throws -> Outcome {
    while true {
      switch try step() {
      case .done(let outcome): return outcome
      case .wait(let deadline): latch?.block(until: deadline)
      }
    }
  }
}

/// Does a piece of work from a task: its system calls run where blocking is allowed, its waits
/// suspend. Cancelling the task ends a wait with `CancellationError`.
package func runSuspending<Work: SteppedWork>(
  _ make: @escaping @Sendable () -> sending Work
) async throws -> Work.Outcome {
  // One step at a time touches the work, so handing it from thread to thread is safe; the box says
  // so to the compiler with a lock that is never contended.
  let box = SteppedBox(make)
  while true {
    try Task.checkCancellation()
    switch try await Blocking.run({ try box.step() }) {
    case .done(let outcome): return outcome
    case .wait(let deadline): await box.latch?.suspend(until: deadline)
    }
  }
}

/// Work that is handed from thread to thread, a step at a time.
private final class SteppedBox<Work: SteppedWork>: Sendable {
  private let work: Mutex<Work>

  init(_ make: @Sendable () -> sending Work) {
    work = Mutex(make())
  }

  var latch: WakeLatch? { work.withLock { $0.latch } }

  func step() throws -> StepProgress<Work.Outcome> {
    try work.withLock { try $0.step() }
  }
}
