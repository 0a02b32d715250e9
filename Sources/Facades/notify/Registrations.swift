import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// The user's center, and this process's registrations by token.
enum Registrations {
  private struct Entry {
    let registration: NotificationRegistration
    let pipe: TokenPipe?
  }

  private struct State {
    var center: DarwinNotificationCenter?
    var lastToken: Int32 = 0
    var entries: [Int32: Entry] = [:]
  }

  private static let state = Mutex(State())

  /// The group whose container is the user's center.
  private static let group = "darwin-notifications"

  /// Returns the user's center.
  ///
  /// - Throws: `WormholeError` if its container cannot be opened; a later call tries again.
  static func center() throws -> DarwinNotificationCenter {
    if let center = state.withLock(\.center) { return center }
    let container = try SharedContainer(group: group)
    // If two first calls are made at once, one has opened the container in vain.
    return state.withLock { state in
      let center = state.center ?? DarwinNotificationCenter(container: container)
      state.center = center
      return center
    }
  }

  /// Registers a name for checks, or with a handler.
  ///
  /// - Parameters:
  ///   - name: The notification.
  ///   - pipe: The pipe, which lasts as long as the registration.
  ///   - token: Receives the token before the handler can be called.
  ///   - queue: The handler's queue.
  ///   - handler: Receives the token; nil for checks only.
  static func add(
    _ name: String, pipe: TokenPipe? = nil, token: inout Int32,
    on queue: DispatchQueue = DispatchQueue(label: "wormhole.notify"),
    handler: (@Sendable (Int32) -> Void)? = nil
  ) throws {
    let notification = try center().container.notification(name)
    // Under the lock, so that a handler that cancels its own token finds it.
    try state.withLock { state in
      state.lastToken += 1
      let new = state.lastToken
      token = new
      let registration =
        try handler.map { handler in try notification.observe(on: queue) { _ in handler(new) } }
        ?? notification.register()
      state.entries[new] = Entry(registration: registration, pipe: pipe)
    }
  }

  /// Returns a token's registration; nil if there is none.
  static func find(_ token: Int32) -> NotificationRegistration? {
    state.withLock { $0.entries[token]?.registration }
  }

  /// Ends a registration, and closes its pipe if no other registration has it.
  ///
  /// - Returns: Whether there was one.
  static func remove(_ token: Int32) -> Bool {
    // Released outside the lock, because the captures of its handler may call back here.
    let entry = state.withLock { $0.entries.removeValue(forKey: token) }
    entry?.registration.cancel()
    return entry != nil
  }

  /// Returns the pipe that an earlier registration reads at a descriptor.
  static func pipe(at descriptor: Int32) -> TokenPipe? {
    state.withLock { state in
      state.entries.values.lazy.compactMap(\.pipe).first { $0.readEnd == descriptor }
    }
  }
}
