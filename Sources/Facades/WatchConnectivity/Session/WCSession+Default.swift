import Synchronization
import Wormhole

extension WCSession {
  /// The session that is the default one in the current task, or in the current call of a delegate.
  @TaskLocal private static var local: WCSession?

  private static let process = Mutex(WCSession(nil))

  /// The session whose place `configure` or the environment sets.
  static var ofProcess: WCSession { process.withLock { $0 } }

  /// Replaces that session.
  ///
  /// - Returns: the previous session.
  static func exchange(_ new: WCSession) -> WCSession {
    process.withLock { session in
      defer { session = new }
      return session
    }
  }

  /// The one session of this process.
  ///
  /// In a call of a delegate, and of a handler that belongs to no actor, it is the session that
  /// calls. This differs only in tests, where a process may have several sessions.
  public static var `default`: WCSession { local ?? ofProcess }

  /// Makes it the default session within a function, and in the tasks that the function begins.
  package func withDefault<Result>(_ body: () throws -> Result) rethrows -> Result {
    try Self.$local.withValue(self, operation: body)
  }

  /// The task-local form for async functions; see the other form.
  package func withDefault<Result>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
  ) async rethrows -> Result {
    try await Self.$local.withValue(self, operation: body)
  }

  /// An object over this session, made once; it lasts as long as the session does.
  package func layer<Layer: AnyObject & Sendable>(_ make: (WCSession) -> Layer) -> Layer {
    // Under the lock, because two layers that are made at once would both become the delegate.
    layer.withLock { layer in
      if let known = layer as? Layer { return known }
      let new = make(self)
      layer = new
      return new
    }
  }
}
