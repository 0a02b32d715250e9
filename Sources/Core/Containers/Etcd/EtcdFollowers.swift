import Dispatch
import Monitoring
import Synchronization

/// What follows keys of a container by a watch, and reads them now and then, too, because old servers may
/// lose events.
package protocol EtcdFollower: AnyObject, Sendable {
  /// Reads its keys again. Must not block.
  func check()
}

/// The followers of a container that are still referred to, and the timer that all share.
final class EtcdFollowers: Sendable {
  /// How often they read again.
  private static let interval: Duration = .seconds(30)

  private struct Weak: Sendable {
    weak var follower: (any EtcdFollower)?
  }

  private let all = Mutex<[Weak]>([])

  func add(_ follower: any EtcdFollower) {
    let isFirst = all.withLock { all in
      defer { all.append(Weak(follower: follower)) }
      return all.isEmpty
    }
    if isFirst { checkLater() }
  }

  private func checkLater() {
    Blocking.timers.asyncAfter(deadline: .now() + Self.interval.dispatchInterval) { [weak self] in
      guard let self else { return }
      let followers = all.withLock { all in
        all.removeAll { $0.follower == nil }
        return all.compactMap(\.follower)
      }
      for follower in followers { follower.check() }
      if !followers.isEmpty { checkLater() }
    }
  }
}

extension EtcdContainer {
  /// Lets a follower read again now and then, as long as it is referred to.
  package func add(_ follower: any EtcdFollower) { followers.add(follower) }
}
