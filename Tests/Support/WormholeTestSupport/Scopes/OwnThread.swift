import Dispatch
import Synchronization
package import Testing
import Wormhole
import WormholeSystem

/// A trait that runs tests on threads that may block, with a limit on their number.
///
/// Most tests here wait for other processes. On the threads of tasks, which are as many as the
/// machine has cores, two such tests would block every task of this process, even the tasks under
/// test. The result of a task would then depend on the number of waiting tests.
package struct OwnThread: SuiteTrait, TestTrait, TestScoping {
  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    // A time limit has begun already, so such a test cannot wait for its turn.
    let isWaiting = test.traits.contains { $0 is MostlyWaiting }
    let slots = test.timeLimit != nil ? nil : isWaiting ? Slots.waiting : Slots.working
    await slots?.take()
    defer { slots?.giveBack() }
    let number = try RunningTests.shared.begin("\(test.id)")
    defer { RunningTests.shared.end(number) }
    try await withTaskExecutorPreference(ThreadExecutor.shared) { try await function() }
  }
}

extension Trait where Self == OwnThread {
  /// Allows the tests to block: see `OwnThread`.
  package static var blocking: Self { OwnThread() }
}

/// A trait for tests that wait for most of their time, for example for the end of a session on etcd.
///
/// They have slots of their own among the tests that run at once, so they begin early in the run and do
/// not prolong its end.
package struct MostlyWaiting: SuiteTrait, TestTrait {
  package var isRecursive: Bool { true }
}

extension Trait where Self == MostlyWaiting {
  /// The tests mostly wait: see `MostlyWaiting`.
  package static var waiting: Self { MostlyWaiting() }
}

/// An executor that runs each job of a task on a thread that may block.
private final class ThreadExecutor: TaskExecutor {
  static let shared = ThreadExecutor()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    Blocking.queue().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// The limit on concurrent tests. They mostly wait, so it exceeds the number of cores. With all of
/// them at once, each would take as long as all together; with eight of each, about one of 2,400 tests
/// in a run on two cores met a delay that it was not written for.
private final class Slots: Sendable {
  static let working = Slots(free: count ?? 5)
  static let waiting = Slots(free: count ?? 5)
  /// TEST_SLOTS=3 in the environment is for a build that is slow, so that waits end within their deadlines.
  private static let count = Program.environment("TEST_SLOTS").flatMap { Int($0) }

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
