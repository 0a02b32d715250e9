import AppGroup
import Dispatch
import Synchronization
package import Testing

/// Runs tests on threads that may block, and not too many of them at a time.
///
/// Most tests here wait for other processes. On the threads of tasks, of which there are as many as
/// the machine has cores, two such tests would hold up every task of this process, those that tests
/// are about among them: what a task does would then depend on how many tests happen to wait.
package struct OwnThread: SuiteTrait, TestTrait, TestScoping {
  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    // A limit of time counts already, so such a test cannot wait for its turn.
    let takesPlace = test.timeLimit == nil
    if takesPlace { await Places.shared.take() }
    defer { if takesPlace { Places.shared.giveBack() } }
    try await withTaskExecutorPreference(ThreadExecutor.shared) { try await function() }
  }
}

extension Trait where Self == OwnThread {
  /// The tests may block: see `OwnThread`.
  package static var blocking: Self { OwnThread() }
}

/// Runs each piece of a task where it may block.
private final class ThreadExecutor: TaskExecutor {
  static let shared = ThreadExecutor()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    Blocking.queue().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// How many tests may run at a time. Most of their time they wait, so that is more than there are
/// cores; with all of them at once, each would be as slow as all together.
private final class Places: Sendable {
  static let shared = Places(free: 8)

  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  init(free: Int) { state = Mutex(State(free: free)) }

  func take() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        guard state.free > 0 else {
          state.waiting.append(continuation)
          return false
        }
        state.free -= 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  func giveBack() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard !state.waiting.isEmpty else {
        state.free += 1
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.resume()
  }
}
