package import WormholeSystem

/// The error for a condition that did not come true before its deadline.
package struct NeverHappened: Error, CustomStringConvertible {
  package let what: String

  package init(what: String) {
    self.what = what
  }

  package var description: String { "did not happen within its deadline: \(what)" }
}

/// The time after which a test that waits for another process has failed. Only a failing test takes so
/// long, so there is room for a machine with ten times as much to do.
package let testPatience = Duration.seconds(120)

/// The deadline of calls that have to succeed.
package var soon: ContinuousClock.Instant { .now + testPatience }

/// Waits until a condition holds. A long wait looks less often, because others need the processor
/// meanwhile.
package func eventually(
  _ what: String, within limit: Duration = testPatience, _ condition: () throws -> Bool
) throws {
  let deadline = ContinuousClock.now + limit
  var pause = Duration.milliseconds(2)
  while try !condition() {
    guard ContinuousClock.now < deadline else { throw NeverHappened(what: what) }
    pauseThread(pause)
    pause = min(pause * 3 / 2, .milliseconds(100))
  }
}

/// As `eventually`, for tests that must not block their thread.
///
/// The limit is longer because other tests block the threads of the pool, so a task may wait for
/// its turn until they end.
package func eventuallyAsync(
  _ what: String, within limit: Duration = .seconds(180), _ condition: @Sendable () -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while !condition() {
    guard ContinuousClock.now < deadline else { throw NeverHappened(what: what) }
    // A task that only yields takes a processor from the other tests.
    try await Task.sleep(for: .milliseconds(2))
  }
}

/// Makes a queue of file events as soon as there can be one more: a user has 128 of them, of which a test
/// with a hundred processes takes most for a while.
package func nextEventQueue() throws -> FileDescriptor {
  let deadline = soon
  while true {
    do {
      return try FileDescriptor.eventQueue()
    } catch {
      guard error == .tooManyOpenFiles, .now < deadline else { throw error }
      pauseThread(.milliseconds(10))
    }
  }
}
