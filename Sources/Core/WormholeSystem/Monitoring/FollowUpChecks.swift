import Synchronization

/// The checks that follow an event: a dying process's close is reported just before the kernel
/// frees its lock, so an immediate check may find it still locked, and no other event comes.
///
/// The kernel is between two lines of `__fput` then; how long depends only on when its thread gets a
/// processor again. So the checks begin close together, and end after some seconds. They cost less
/// than the first: the only possible change is that a known lock is free.
package final class FollowUpChecks: Cancelling {
  static let delays: [Duration] =
    [.microseconds(300)] + [1, 2, 4, 8, 16, 32, 64, 256, 1_024, 4_096].map { .milliseconds($0) }

  private struct Condition {
    var round: UInt64 = 0
    var mayHaveChanged = true
    var isEnded = false
    var check: @Sendable () -> Void
  }

  private let condition: Mutex<Condition>

  package init(check: @escaping @Sendable () -> Void = {}) {
    condition = Mutex(Condition(check: check))
  }

  /// Sets the check, if creating it needs these checks.
  package func use(_ check: @escaping @Sendable () -> Void) {
    condition.withLock { $0.check = check }
  }

  /// Checks once, now.
  package func check() { condition.withLock(\.check)() }

  /// After an event: checks now, and again a few times.
  package func begin() {
    let round = condition.withLock { condition -> UInt64? in
      condition.round += 1
      condition.mayHaveChanged = true
      return condition.isEnded ? nil : condition.round
    }
    guard let round else { return }
    check()
    follow(round, 0)
  }

  private func follow(_ round: UInt64, _ step: Int) {
    guard step < Self.delays.count else { return }
    Timers.after(Self.delays[step]) { [weak self] in
      // Another event begins from the first delay.
      guard let self, condition.withLock({ !$0.isEnded && $0.round == round }) else { return }
      check()
      follow(round, step + 1)
    }
  }

  package func cancel() { _ = end() }

  /// - Returns: false if they had ended before.
  package func end() -> Bool {
    condition.withLock { !exchange(&$0.isEnded, with: true) }
  }

  /// Whether an event came since the last call; the check that follows will have seen it.
  package func takeEvent() -> Bool {
    // Excludes: an event during the check that would count as seen by it.
    condition.withLock { exchange(&$0.mayHaveChanged, with: false) }
  }

  /// A check failed: the next one must not rely on earlier findings.
  package func noteFailure() { condition.withLock { $0.mayHaveChanged = true } }
}
