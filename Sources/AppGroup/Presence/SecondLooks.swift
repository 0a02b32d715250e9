import Dispatch
import Synchronization

/// The looks that follow an event: a dying process's close is told just before the kernel frees its
/// lock, so a look at once may find it still locked, and no other event comes.
///
/// The kernel is between two lines of `__fput` then; how long depends only on when its thread gets a
/// processor again. So the looks begin close together, and end after some seconds.
final class SecondLooks: Sendable {
  static let delays: [Duration] =
    [.microseconds(300)] + (0..<13).map { .milliseconds(1 << $0) }

  private struct Condition {
    var round: UInt64 = 0
    var isEnded = false
  }

  private let condition = Mutex(Condition())
  private let look: @Sendable () -> Void

  init(look: @escaping @Sendable () -> Void) {
    self.look = look
  }

  /// An event came: look now, and again a few times.
  func begin() {
    let round = condition.withLock { condition -> UInt64? in
      condition.round += 1
      return condition.isEnded ? nil : condition.round
    }
    guard let round else { return }
    look()
    follow(round, 0)
  }

  private func follow(_ round: UInt64, _ step: Int) {
    guard step < Self.delays.count else { return }
    let delay = Self.delays[step].dispatchInterval
    Blocking.timers.asyncAfter(deadline: .now() + delay) { [weak self] in
      guard let self, self.isCurrent(round) else { return }
      look()
      follow(round, step + 1)
    }
  }

  // Another event begins anew.
  private func isCurrent(_ round: UInt64) -> Bool {
    condition.withLock { !$0.isEnded && $0.round == round }
  }

  func end() {
    condition.withLock { $0.isEnded = true }
  }
}
