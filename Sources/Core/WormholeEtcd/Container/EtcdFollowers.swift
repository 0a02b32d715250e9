import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// A follower of a container's keys by a watch, which also reads them now and then, because old
/// servers may lose events, and because only a read shows that the history was replaced.
protocol EtcdFollower: AnyObject, Sendable {
  /// Reads its keys again. Must not block.
  func check()
}

/// The followers of a container that are still in use, and the timer that all share.
final class EtcdFollowers: Sendable {
  /// How often they read again.
  private static let interval: Duration = .seconds(30)

  private struct Weak: Sendable {
    weak var follower: (any EtcdFollower)?
  }

  private let all = Mutex<[Weak]>([])

  /// Lets a follower read again now and then, as long as it is in use.
  func add(_ follower: any EtcdFollower) {
    let isFirst = all.withLock { all in
      defer { all.append(Weak(follower: follower)) }
      return all.isEmpty
    }
    if isFirst { checkLater() }
  }

  private func checkLater() {
    Blocking.timers.asyncAfter(deadline: .now() + Self.interval.dispatchInterval) { [weak self] in
      if self?.checkAll() == true { self?.checkLater() }
    }
  }

  /// - Returns: Whether there are any.
  func checkAll() -> Bool {
    let followers = all.withLock { all in
      all.removeAll { $0.follower == nil }
      return all.compactMap(\.follower)
    }
    for follower in followers { follower.check() }
    return !followers.isEmpty
  }
}

/// A process that has a session but makes no other requests detects a replaced history in this way.
extension EtcdContainer.Shared: EtcdFollower {
  func check() {
    guard hasSession else { return }
    Blocking.queue().async { [weak self] in
      guard let self else { return }
      let container = EtcdContainer(self)
      // A look that fails changes nothing, because the next one follows half a minute later.
      _ = try? container.item(container.formatKey)
    }
  }
}
