public import Dispatch
import WormholePropertyLists
import WormholeSystem

/// A name that every process of a container can post and observe, without payload, with coalescing
/// and a 64-bit state.
///
/// The semantics are those of notify(3): a post reaches all observers, including the poster's own;
/// several posts in a row may be delivered as one; setting the state does not post. One rule
/// differs on purpose: the state remains when the last observer has gone, so that a shell can set
/// it for a later reader (in notify(3) it disappears with the last registration).
///
/// ```swift
/// let lights = container.notification("lights-out")
/// try lights.setState(7)
/// try lights.post()
/// for await _ in try lights.posts() { print("lights out in hall \(try lights.state())") }
/// ```
public struct DarwinNotification: Sendable {
  /// The container that the name belongs to. The same name in another container is a different
  /// notification.
  public let container: SharedContainer
  /// The name.
  public let name: String

  private let store: any PostStore
  private let stateValue: PlainValue

  init(container: SharedContainer, name: String) {
    self.container = container
    self.name = name
    store = container.engine(as: (any PostEngine).self).posts(name)
    stateValue = PlainValue(container: container, identifier: name, kind: .notification)
  }

  /// Posts to all observers. A post without observers succeeds.
  ///
  /// - Throws: `WormholeError` for an error of the file system.
  /// - Complexity: One system call, a rename, if this process posted last, and eight after another
  ///   process's post; no lock, so no process can delay it. On etcd one request.
  public func post() throws {
    try reporting("post the notification \"\(name)\"", path: store.path) {
      try store.post()
    }
  }

  /// Calls a handler after every post, or once after several in a row.
  ///
  /// - Parameters:
  ///   - startsWithPast: Whether an earlier post, however old, is delivered first. A sweep drops
  ///     the record of a post after a day.
  ///   - queue: The queue on which the handler is called, one call at a time.
  ///   - handler: Receives the registration, which it may cancel.
  /// - Returns: The registration, which lasts until it is cancelled or released. No post after this
  ///   method returns is missed.
  /// - Throws: `WormholeError` if the container can no longer be used.
  public func observe(
    startsWithPast: Bool = false, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (NotificationRegistration) -> Void
  ) throws -> NotificationRegistration {
    try observe(startsWithPast: startsWithPast, calling: queue, handler)
  }

  /// Calls a handler as `observe` does, on any kind of queue.
  package func observe(
    startsWithPast: Bool, calling queue: any HandlerQueue,
    _ handler: @escaping @Sendable (NotificationRegistration) -> Void
  ) throws -> NotificationRegistration {
    let registration = NotificationRegistration(self, posts: store)
    try registration.begin(startsWithPast: startsWithPast, on: queue, handler)
    return registration
  }

  /// Registers for `check()` only; no handler is called.
  ///
  /// - Throws: `WormholeError` if the container can no longer be used.
  public func register() throws -> NotificationRegistration {
    _ = try container.root.handle()
    return NotificationRegistration(self, posts: store)
  }

  /// Returns the posts from now on, for `for await`; several in a row may arrive as one.
  ///
  /// - Throws: As `observe`.
  public func posts() throws -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let registration = try observe(on: DispatchQueue(label: "wormhole.posts")) { _ in
      continuation.yield()
    }
    continuation.onTermination = { _ in registration.cancel() }
    return stream
  }

  /// Returns the 64-bit state of the name; 0 if it was never set.
  ///
  /// - Throws: `WormholeError` if its file cannot be read.
  public func state() throws -> UInt64 {
    guard let value = try stateValue.read() else { return 0 }
    guard let state = value.uint64Value else {
      throw WormholeError(
        .damaged, "read the state of \"\(name)\"", path: stateValue.path,
        reason: "it is not an unsigned 64-bit integer", remedy: "set it again")
    }
    return state
  }

  /// Sets the 64-bit state for all processes; does not post.
  ///
  /// - Throws: `WormholeError`, as `Value.replace`.
  public func setState(_ state: UInt64, until deadline: ContinuousClock.Instant? = nil) throws {
    try stateValue.replace(with: PropertyListValue(state), until: deadline)
  }

  /// Whether it was posted or has a state, and was not removed since.
  package func isUsed() throws -> Bool {
    let isPosted = try reporting("look at the notification \"\(name)\"", path: store.path) {
      try !store.mark().marks.isEmpty
    }
    return try isPosted || stateValue.version() != nil
  }

  /// Removes the state and the record of the last post, as if the name had never been used. A post that
  /// comes meanwhile stays. Observers remain, and are not called.
  ///
  /// - Parameter deadline: How long to wait for a process that sets the state; by default 10
  ///   seconds from now.
  /// - Returns: Whether there was a state or a post.
  /// - Throws: `WormholeError`, as `Value.remove`.
  @discardableResult
  public func remove(until deadline: ContinuousClock.Instant? = nil) throws -> Bool {
    let isRemoved = try stateValue.remove(until: deadline)
    return try reporting("remove the notification \"\(name)\"", path: store.path) {
      let mark = try store.mark()
      return try !mark.marks.isEmpty && store.remove(mark) || isRemoved
    }
  }
}

extension SharedContainer {
  /// Returns the notification with a name. No file is touched before it is posted.
  ///
  /// - Parameter name: Any string, byte for byte.
  public func notification(_ name: String) -> DarwinNotification {
    DarwinNotification(container: self, name: name)
  }

  /// Returns the names of all notifications that were ever posted or had a state set, unordered.
  public func notificationNames() throws -> [String] {
    try identifiers(of: .notification)
  }
}
