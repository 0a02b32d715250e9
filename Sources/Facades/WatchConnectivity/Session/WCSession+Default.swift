import Synchronization
import Wormhole

extension WCSession {
  /// The session that is the default one in the current task, or in the current call of a delegate.
  @TaskLocal private static var local: WCSession?

  private static let process = Mutex(WCSession(nil))

  /// The session that `configure` and the environment place.
  static var ofProcess: WCSession { process.withLock { $0 } }

  /// Replaces that session.
  ///
  /// - Returns: the session before.
  static func exchange(_ new: WCSession) -> WCSession {
    process.withLock { session in
      defer { session = new }
      return session
    }
  }

  /// The one session of this process.
  ///
  /// In a call of a delegate, and of a handler that belongs to no actor, it is the session that calls. That
  /// makes a difference only in tests, where a process may have several.
  public static var `default`: WCSession { local ?? ofProcess }

  /// Makes it the default session within a function, and in the tasks that the function begins.
  package func withDefault<Result>(_ body: () throws -> Result) rethrows -> Result {
    try Self.$local.withValue(self, operation: body)
  }

  /// The task-local form for async functions; see the other one.
  package func withDefault<Result>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
  ) async rethrows -> Result {
    try await Self.$local.withValue(self, operation: body)
  }

  /// An object over this session, made once; it lasts as long as the session does.
  package func layer<Layer: AnyObject & Sendable>(_ make: (WCSession) -> Layer) -> Layer {
    // Under the lock, because two that are made at once would both become the session's delegate.
    layer.withLock { layer in
      if let known = layer as? Layer { return known }
      let new = make(self)
      layer = new
      return new
    }
  }
}
