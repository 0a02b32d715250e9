import Glibc
import Synchronization
import WormholeSystem

/// The tests that are running, and a thread that names those that take unusually long.
///
/// A run that hangs is ended from outside, which says nothing about the place. No wait of a test is
/// longer than half of this limit.
final class RunningTests: Sendable {
  static let shared = RunningTests(limit: .seconds(120))

  private struct State {
    var tests: [Int: (name: String, start: ContinuousClock.Instant)] = [:]
    var nextNumber = 0
    var isWatched = false
  }

  private let limit: Duration
  private let state = Mutex(State())

  private init(limit: Duration) { self.limit = limit }

  func begin(_ name: String) throws -> Int {
    let (number, isFirst) = state.withLock { state in
      defer { state.isWatched = true }
      state.nextNumber += 1
      state.tests[state.nextNumber] = (name, .now)
      return (state.nextNumber, !state.isWatched)
    }
    if isFirst { try startThread(name: "running tests") { self.watch() } }
    return number
  }

  func end(_ number: Int) { state.withLock { $0.tests[number] = nil } }

  private func watch() {
    while true {
      pauseThread(limit)
      let now = ContinuousClock.now
      let long = state.withLock { $0.tests.values.filter { now - $0.start > limit } }
      for test in long {
        print("still running after \((now - test.start).components.seconds) s: \(test.name)")
      }
      // What is printed to a pipe would be lost with a run that is ended from outside.
      fflush(nil)
    }
  }
}
