import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// The user of a follower of keys.
protocol KeyFollowing: AnyObject, Sendable {
  /// Reads the range, as the user needs it, and returns the moment of the read; on the follower's
  /// queue, the first time on the caller's thread.
  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment

  /// Takes events; on the thread of the watches, so it must not wait.
  func hear(_ events: [EtcdEvent], of history: Int)

  /// Called after each look but the first.
  ///
  /// - Parameter isNewWatch: False if the look was only a precaution.
  func looked(isNewWatch: Bool)

  /// Called when the watch has ended and could not begin again yet.
  func failed(_ error: EtcdError)
}

extension KeyFollowing {
  func looked(isNewWatch: Bool) {}
  func failed(_ error: EtcdError) {}
}

/// Follows a range of keys: reads it once, and then hears of each change by a watch.
///
/// ```
/// begin            look at all, then watch from the moment of that look
/// events           report them, with the history that they are of
/// a break          the watch goes on by itself; look once more, because old servers may lose events
/// the watch ends   the history that it needs was given up or replaced: begin again
/// now and then     look once more if events were lost: see `EtcdFollowers`
/// ```
///
/// A failed look is tried again after a pause that doubles, from 100 ms to 5 s, and a watch that
/// ended begins again in the same way. It never waits on the watches' thread.
final class KeyFollower: Sendable {
  private struct State {
    weak var user: (any KeyFollowing)?
    var watch: EtcdWatch?
    /// How many watches were begun: one that ends before it is kept must not replace its successor.
    var begun = 0
    var isCancelled = false
    /// Whether a look is pending, and whether a watch begins with it.
    var pending: (isLook: Bool, isWatch: Bool) = (false, false)
    var heard = HeardChanges()
  }

  private let container: EtcdContainer
  let range: KeyRange
  private let queue: BlockingQueue
  private let state = Mutex(State())

  private static let firstPause: Duration = .milliseconds(100)
  private static let longestPause: Duration = .seconds(5)

  /// - Parameter queue: The queue of its looks, one after another.
  init(
    _ container: EtcdContainer, _ range: KeyRange, on queue: BlockingQueue = Blocking.queue()
  ) {
    self.container = container
    self.range = range
    self.queue = queue
  }

  deinit { cancel() }

  /// Looks, and begins to watch.
  func begin(
    for user: any KeyFollowing, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) {
    begin(for: user, after: try user.look(until: deadline))
  }

  /// Begins to watch after a moment at which its user knows the keys.
  func begin(for user: any KeyFollowing, after moment: EtcdMoment) {
    state.withLock { $0.user = user }
    watch(from: moment)
    container.shared.followers.add(self, of: container.shared)
  }

  func cancel() {
    let watch = state.withLock { state in
      state.isCancelled = true
      return state.watch.take()
    }
    watch?.cancel()
  }

  /// Looks once more, in case events were lost. Does not wait.
  func check() { later(isWatch: false) }

  /// Looks once more if a glance at the range shows that events were lost. Does not wait.
  func check(count: Int64, newest: Int64, at moment: EtcdMoment) {
    let isComplete = state.withLock { state in
      state.watch == nil || state.heard.explain(count: count, newest: newest, at: moment)
    }
    if !isComplete { check() }
  }

  private var user: (any KeyFollowing)? { state.withLock(\.user) }

  private func watch(from moment: EtcdMoment) {
    let number = state.withLock { state in
      state.begun += 1
      return state.begun
    }
    let new = container.client.watch(range, after: moment) { [weak self] in
      self?.hear($0, of: moment.history)
    }
    let old = state.withLock { state -> EtcdWatch? in
      guard !state.isCancelled, state.begun == number else { return new }
      state.heard = HeardChanges(after: moment)
      return exchange(&state.watch, with: new)
    }
    old?.cancel()
  }

  // On the thread of the watches.
  private func hear(_ news: EtcdNews, of history: Int) {
    switch news {
    case .events(let events):
      state.withLock { $0.heard.take(events, of: history) }
      user?.hear(events, of: history)
    case .resumed: later(isWatch: false)
    case .ended(let error):
      if error.code != .compacted { user?.failed(error) }
      later(isWatch: true)
    }
  }

  private func later(isWatch: Bool, after pause: Duration = .zero) {
    let mustBegin = state.withLock { state in
      defer { state.pending = (true, state.pending.isWatch || isWatch) }
      return !state.isCancelled && !state.pending.isLook
    }
    guard mustBegin else { return }
    queue.after(pause) { [weak self] in self?.now(pause) }
  }

  private func now(_ pause: Duration) {
    let isWatch = state.withLock { state -> Bool? in
      defer { state.pending = (false, false) }
      return state.isCancelled ? nil : state.pending.isWatch
    }
    guard let isWatch, let user else { return }
    do throws(EtcdError) {
      let moment = try user.look(until: .now + CallLimit.standardWait)
      if isWatch { watch(from: moment) } else { state.withLock { $0.heard.know(moment) } }
      user.looked(isNewWatch: isWatch)
    } catch {
      // It may be fixed, in etcd or on the way there. A watch that continues reports the changes.
      if isWatch { user.failed(error) }
      later(isWatch: isWatch, after: min(max(pause * 2, Self.firstPause), Self.longestPause))
    }
  }
}

/// Follows keys of which its user keeps nothing.
final class KeyWatch: Cancelling, KeyFollowing {
  private let container: EtcdContainer
  private let follower: KeyFollower
  private let heard: @Sendable ([EtcdEvent]) -> Void
  private let mayHaveMissed: @Sendable () -> Void

  /// - Parameters:
  ///   - heard: Gets events, on the thread of the watches.
  ///   - mayHaveMissed: Called when events may have been lost.
  init(
    _ container: EtcdContainer, _ range: KeyRange,
    heard: @escaping @Sendable ([EtcdEvent]) -> Void,
    mayHaveMissed: @escaping @Sendable () -> Void
  ) throws(EtcdError) {
    self.container = container
    self.heard = heard
    self.mayHaveMissed = mayHaveMissed
    follower = KeyFollower(container, range)
    try follower.begin(for: self, until: container.callDeadline)
  }

  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    try container.until(deadline).glance(at: follower.range).moment
  }

  func hear(_ events: [EtcdEvent], of history: Int) { heard(events) }

  func looked(isNewWatch: Bool) { mayHaveMissed() }

  func cancel() { follower.cancel() }
}
