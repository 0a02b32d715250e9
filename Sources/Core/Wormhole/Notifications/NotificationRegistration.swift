import Dispatch
import Synchronization
public import WormholeSystem

/// One registration for a notification, called a token in notify(3).
///
/// ```swift
/// let registration = try container.notification("lights-out").register()
/// if try registration.check() { print("posted since the last check") }
/// registration.cancel()
/// ```
public final class NotificationRegistration: Sendable, Cancelling {
  private struct Condition {
    /// The mark at the last check or call; nil before the first check.
    var checked: PostMark?
    var suspensions = 0
    /// Whether it was resumed since the last look: the posts until then are one call.
    var isResumed = false
    var isCancelled = false
    var listening: Listening?
  }

  private struct Listening {
    let watch: any PostWatching
    let delivery: ChangeDelivery<PostMark>
  }

  /// The largest nesting depth of suspensions; further ones do not count (notify_suspend(3)).
  static let deepestSuspension = 255

  /// The notification.
  public let notification: DarwinNotification
  private let posts: any PostStore
  private let condition = Mutex(Condition())
  private let retry = Retry()

  init(_ notification: DarwinNotification, posts: any PostStore) {
    self.notification = notification
    self.posts = posts
  }

  deinit { cancel() }

  func begin(
    startsWithPast: Bool, on queue: any HandlerQueue,
    _ handler: @escaping @Sendable (NotificationRegistration) -> Void
  ) throws {
    // A post that is held back stays undelivered, so the look after the last resume finds it, once.
    let delivery = ChangeDelivery<PostMark>(initial: PostMark(), on: queue) { [weak self] last in
      let call: @Sendable () -> Void = { [weak self] in
        guard let self else { return }
        if self.mayCall { return handler(self) }
        // It was suspended after the look.
        self.condition.withLock(\.listening)?.delivery.redeliver(from: last)
      }
      do {
        guard let self, self.mayCall, let mark = try self.lastPost() else { return (last, nil) }
        return (mark, mark.hasPost(since: last) ? call : nil)
      } catch {
        // A failed look shows no post. The mark that a later look finds is compared with the same one.
        self?.lookAgain(after: error)
        return (last, nil)
      }
    }
    let watch = try reporting("listen", path: posts.path) {
      try ThreadShortage.ruleOut()
      return try posts.listen { delivery.signal() }
    }
    condition.withLock { $0.listening = Listening(watch: watch, delivery: delivery) }
    let known = try reporting("listen", path: posts.path) { try watch.mark(ofNow: false) }
    delivery.open(known: startsWithPast ? PostMark() : known, signalled: startsWithPast)
  }

  /// Nil after its end.
  private func lastPost() throws -> PostMark? {
    let (watch, isResumed) = condition.withLock {
      ($0.listening?.watch, exchange(&$0.isResumed, with: false))
    }
    return try watch?.mark(ofNow: isResumed)
  }

  private func lookAgain(after error: any Error) {
    // An engine signals when it can be reached again.
    guard !(error is any EngineError) else { return }
    retry.soon { [weak self] in self?.condition.withLock(\.listening)?.delivery.signal() }
  }

  private var mayCall: Bool {
    condition.withLock { !$0.isCancelled && $0.suspensions == 0 }
  }

  /// Returns whether there was a post since the last check; true at the first check.
  ///
  /// A sweep of the container drops the record of a post after a day: see the limits.
  ///
  /// - Throws: `WormholeError.Code.invalidToken` after `cancel()`, or an error of the file system.
  public func check() throws -> Bool {
    try valid()
    let path = posts.path
    let mark = try reporting("check the notification", path: path) { try posts.mark() }
    return condition.withLock { condition in
      exchange(&condition.checked, with: mark).map(mark.hasPost) ?? true
    }
  }

  /// Holds calls back until as many calls of `resume()` follow. Posts in the meantime become one
  /// call at the last `resume()`. Other registrations of the name are not affected.
  ///
  /// - Throws: `WormholeError.invalidToken` after `cancel()`.
  public func suspend() throws {
    try valid()
    condition.withLock { $0.suspensions = min($0.suspensions + 1, Self.deepestSuspension) }
  }

  /// Ends one suspension; has no effect without one.
  ///
  /// - Throws: `WormholeError.invalidToken` after `cancel()`.
  public func resume() throws {
    try valid()
    let delivery = condition.withLock { condition -> ChangeDelivery<PostMark>? in
      guard condition.suspensions > 0 else { return nil }
      condition.suspensions -= 1
      condition.isResumed = condition.suspensions == 0
      return condition.isResumed ? condition.listening?.delivery : nil
    }
    delivery?.signal()
  }

  /// Returns the name's 64-bit state; see `DarwinNotification.state()`.
  ///
  /// - Throws: `WormholeError.Code.invalidToken` after `cancel()`, or an error of reading it.
  public func state() throws -> UInt64 {
    try valid()
    return try notification.state()
  }

  /// Sets the name's 64-bit state; see `DarwinNotification.setState(_:until:)`.
  ///
  /// - Throws: `WormholeError.Code.invalidToken` after `cancel()`, or an error of writing it.
  public func setState(_ state: UInt64) throws {
    try valid()
    try notification.setState(state)
  }

  /// Whether the registration has not been cancelled.
  public var isValid: Bool { condition.withLock { !$0.isCancelled } }

  /// How posts are noticed; nil after `DarwinNotification.register`, which calls no handler.
  public var detection: ChangeDetection? {
    condition.withLock { $0.listening?.watch.detection }
  }

  /// Ends the registration; see `ObservationToken.cancel()`.
  public func cancel() {
    let listening = condition.withLock { condition in
      condition.isCancelled = true
      return condition.listening.take()
    }
    listening?.delivery.cancel()
    listening?.watch.cancel()
  }

  private func valid() throws {
    guard isValid else {
      throw WormholeError(
        .invalidToken, "use the registration for \"\(notification.name)\"",
        path: posts.path, reason: "it was cancelled", remedy: "register again")
    }
  }
}
