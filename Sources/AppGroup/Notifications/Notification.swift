public import Dispatch
import PropertyLists
import SystemCalls

/// A name that can be posted and heard by every process of a container: no payload, coalescing,
/// with a 64-bit state.
///
/// The semantics are those of notify(3): a post reaches all observers, the poster's own too; several
/// posts in a row may be heard as one; setting the state does not post. One rule differs on purpose:
/// the state stays when the last observer has gone, so that a shell can set it for a later reader
/// (in notify(3) it vanishes with the last registration).
public struct Notification: Sendable {
  /// The container that the name belongs to; the same name in another one is another notification.
  public let container: SharedContainer
  /// The name.
  public let name: String

  private let bell: Bell
  private let stateValue: Value

  init(container: SharedContainer, name: String) {
    self.container = container
    self.name = name
    bell = Bell(root: container.root, name: name)
    stateValue = Value(container: container, identifier: name, kind: .notification)
  }

  /// Tells all observers. It is no error if there are none.
  ///
  /// - Throws: `AppGroupError` for what the file system refuses.
  /// - Complexity: one rename in a directory of one entry; no lock, so nobody can delay it.
  public func post() throws {
    try reporting("post the notification \"\(name)\"", path: bell.directory.path) {
      try bell.ring()
    }
  }

  /// Calls a handler after every post, or once after several in a row.
  ///
  /// - Parameters:
  ///   - startsWithPast: whether a post of before, however long ago, is told first; not one of
  ///     over a day ago that a sweep has forgotten.
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets the registration, which it may cancel.
  /// - Returns: the registration; it ends when it is cancelled or forgotten. Nothing that is posted
  ///   after this returns is missed.
  /// - Throws: `AppGroupError` when the container cannot be used any more.
  public func observe(
    startsWithPast: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (NotificationRegistration) -> Void
  ) throws -> NotificationRegistration {
    let registration = NotificationRegistration(self, bell: bell)
    try registration.begin(startsWithPast: startsWithPast, on: queue, handler)
    return registration
  }

  /// Registers for `check()` only: nobody is called.
  ///
  /// - Throws: `AppGroupError` when the container cannot be used any more.
  public func register() throws -> NotificationRegistration {
    _ = try container.root.handle()
    return NotificationRegistration(self, bell: bell)
  }

  /// The posts from now on, for `for await`; several in a row may come as one.
  ///
  /// - Throws: as `observe`.
  public func posts() throws -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let registration = try observe(on: Blocking.queue()) { _ in continuation.yield() }
    continuation.onTermination = { _ in registration.cancel() }
    return stream
  }

  /// The 64-bit state of the name; 0 if it was never set.
  ///
  /// - Throws: `AppGroupError` when its file cannot be read.
  public func state() throws -> UInt64 {
    guard let value = try stateValue.read() else { return 0 }
    guard let state = value.uint64Value else {
      throw AppGroupError(
        .damaged, "read the state of \"\(name)\"", path: stateValue.path,
        reason: "it is no unsigned 64-bit integer", remedy: "set it again")
    }
    return state
  }

  /// Sets the 64-bit state for all processes; does not post.
  ///
  /// - Throws: `AppGroupError`, as `Value.replace`.
  public func setState(
    _ state: UInt64, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try stateValue.replace(with: PropertyListValue(state), until: deadline)
  }
}
