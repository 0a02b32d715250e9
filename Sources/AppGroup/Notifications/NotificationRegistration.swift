import Dispatch
import Synchronization
import SystemCalls

/// One registration for a notification: what notify(3) calls a token.
public final class NotificationRegistration: Sendable {
  private struct Condition {
    /// What the last check, or the last call, has heard; nil before the first check.
    var checked: Bell.Sound?
    var suspensions = 0
    var postedWhileSuspended = false
    var isCancelled = false
    var watch: Watch?
    var delivery: Delivery<Bell.Sound?>?
  }

  /// How often suspensions nest at most; more count as this many (notify_suspend(3)).
  static let deepestSuspension = 255

  /// The notification.
  public let notification: Notification
  private let bell: Bell
  private let condition = Mutex(Condition())

  init(_ notification: Notification, bell: Bell) {
    self.notification = notification
    self.bell = bell
  }

  deinit { cancel() }

  func begin(
    startsWithPast: Bool, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (NotificationRegistration) -> Void
  ) throws {
    let call: @Sendable () -> Void = { [weak self] in
      if let self, self.mayCall() { handler(self) }
    }
    let delivery = Delivery<Bell.Sound?>(initial: nil, on: queue) { [bell] last in
      do {
        let sound = try bell.sound()
        return (sound, sound == last ? nil : call)
      } catch {
        // Whether there was a post cannot be told: a false alarm is allowed, silence is not.
        return (nil, call)
      }
    }
    let watch = try bell.watch { delivery.signal() }
    condition.withLock {
      $0.watch = watch
      $0.delivery = delivery
    }
    let known = try reporting("listen", path: bell.directory.path) { try bell.sound() }
    delivery.open(known: startsWithPast ? .silence : known, signalled: startsWithPast)
  }

  private func mayCall() -> Bool {
    condition.withLock { condition in
      guard !condition.isCancelled else { return false }
      guard condition.suspensions == 0 else {
        condition.postedWhileSuspended = true
        return false
      }
      return true
    }
  }

  /// Whether there has been a post since the last check; true at the first one.
  ///
  /// A sweep of the container forgets a post after a day: see the limits.
  ///
  /// - Throws: `AppGroupError`: `invalidToken` after `cancel()`, or what the file system refuses.
  public func check() throws -> Bool {
    try valid()
    let path = bell.directory.path
    let sound = try reporting("check the notification", path: path) { try bell.sound() }
    return condition.withLock { condition in
      defer { condition.checked = sound }
      return condition.checked != sound
    }
  }

  /// Holds calls back. Nests: as many `resume()`s follow. Posts meanwhile become one call at the
  /// last of them. Other registrations of the name go on.
  ///
  /// - Throws: `AppGroupError.invalidToken` after `cancel()`.
  public func suspend() throws {
    try valid()
    condition.withLock { $0.suspensions = min($0.suspensions + 1, Self.deepestSuspension) }
  }

  /// Ends one suspension; without one it does nothing.
  ///
  /// - Throws: `AppGroupError.invalidToken` after `cancel()`.
  public func resume() throws {
    try valid()
    let delivery = condition.withLock { condition -> Delivery<Bell.Sound?>? in
      guard condition.suspensions > 0 else { return nil }
      condition.suspensions -= 1
      guard condition.suspensions == 0, condition.postedWhileSuspended else { return nil }
      condition.postedWhileSuspended = false
      return condition.delivery
    }
    delivery?.redeliver(from: nil)
  }

  /// The name's 64-bit state; see `Notification.state()`.
  ///
  /// - Throws: `AppGroupError`: `invalidToken` after `cancel()`, or when it cannot be read.
  public func state() throws -> UInt64 {
    try valid()
    return try notification.state()
  }

  /// Sets the name's 64-bit state; see `Notification.setState(_:until:)`.
  ///
  /// - Throws: `AppGroupError`: `invalidToken` after `cancel()`, or when it cannot be written.
  public func setState(_ state: UInt64) throws {
    try valid()
    try notification.setState(state)
  }

  /// Whether the registration has not been cancelled.
  public var isValid: Bool { condition.withLock { !$0.isCancelled } }

  /// How posts are noticed; nil after `Notification.register`, by which nobody is called.
  public var detection: Observation.Detection? {
    switch condition.withLock({ $0.watch?.detection }) {
    case .events: .events
    case .polling(let reason): .polling(reason: reason)
    case nil: nil
    }
  }

  /// Ends the registration. May be called in its own handler.
  ///
  /// A call that another thread is making then, or is just about to make, goes on to its end; no
  /// further one is made. To have none at all after it, cancel on the handler's own serial queue.
  public func cancel() {
    let (watch, delivery) = condition.withLock { condition in
      condition.isCancelled = true
      let parts = (condition.watch, condition.delivery)
      condition.watch = nil
      condition.delivery = nil
      return parts
    }
    delivery?.cancel()
    watch?.cancel()
  }

  private func valid() throws {
    guard isValid else {
      throw AppGroupError(
        .invalidToken, "use the registration for \"\(notification.name)\"",
        path: bell.directory.path, reason: "it was cancelled", remedy: "register again")
    }
  }
}
