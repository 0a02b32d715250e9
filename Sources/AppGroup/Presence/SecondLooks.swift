import Dispatch
import Synchronization
import SystemCalls

/// The looks that follow an event: a dying process's close is told just before the kernel frees its
/// lock, so a look at once may find it still locked, and no other event comes.
///
/// The kernel is between two lines of `__fput` then; how long depends only on when its thread gets a
/// processor again. So the looks begin close together, and end after some seconds. They cost less
/// than the first: all that may have changed is that a known lock is free.
final class SecondLooks: Sendable {
  static let delays: [Duration] =
    [.microseconds(300)] + [1, 2, 4, 8, 16, 32, 64, 256, 1_024, 4_096].map { .milliseconds($0) }

  private struct Condition {
    var round: UInt64 = 0
    var mayHaveChanged = true
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
      condition.mayHaveChanged = true
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

  /// Who is here, for a look.
  ///
  /// - Parameter last: what the last look found.
  func members(of presence: Presence, last: [PresenceMember]?) throws -> [PresenceMember] {
    let mayHaveChanged = condition.withLock { condition in
      // Excludes: an event during the look that would count as seen by it.
      defer { condition.mayHaveChanged = false }
      return condition.mayHaveChanged
    }
    do {
      if let last, !mayHaveChanged, try presence.place.areLocked(last.map(\.id)) { return last }
      let members = try presence.members()
      return mayHaveChanged && members == last
        ? try afterMoment(members, of: presence) : members
    } catch {
      condition.withLock { $0.mayHaveChanged = true }
      throw error
    }
  }
}

/// The event told of something, and nothing has changed: most likely a lock that is about to be free.
/// Trying for a moment is sooner than any timer.
private func afterMoment(
  _ members: [PresenceMember], of presence: Presence
) throws -> [PresenceMember] {
  guard !members.isEmpty else { return members }
  for tries in 0..<4 {
    pauseThread(.microseconds(20 << tries))
    if try !presence.place.areLocked(members.map(\.id)) { return try presence.members() }
  }
  return members
}

extension PresenceDirectory {
  /// Whether all these are still there and locked, by whomever.
  fileprivate func areLocked(_ ids: [String]) throws -> Bool {
    guard !ids.isEmpty else { return true }
    guard let place = try directory.open() else { return false }
    for id in ids {
      do throws(Errno) {
        let file = try FileDescriptor.openBeneath(
          Self.memberName(id), at: place.rawValue, [.readOnly, .nonBlocking])
        if try file.tryLock(.shared) { return false }
      } catch {
        guard Self.isPassedOver(error) else { throw error }
        return false
      }
    }
    return true
  }
}
