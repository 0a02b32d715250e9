import Synchronization
package import Wormhole
import WormholePeers

extension WCSession {
  /// The default session in the current task, or in the current call of a delegate.
  @TaskLocal private static var local: WCSession?

  private static let process = Mutex(WCSession(nil))

  /// The session whose place `configure` or the environment sets.
  static var ofProcess: WCSession { process.withLock { $0 } }

  /// The session of this task, or of the process.
  static var current: WCSession { local ?? ofProcess }

  /// Makes it the default session within a function, and in the tasks that the function starts.
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

// Several sessions in one process, each of which ends; for tests. An app has one, which lasts as
// long as its process.
extension WCSession {
  /// A session of its own, with a place of its own.
  ///
  /// - Throws: `WCError`: `sessionNotSupported` for a name that is invalid for a peer.
  package static func making(
    _ role: Role, in container: SharedContainer, watchName: String, replyTimeout: Duration
  ) throws(WCError) -> WCSession {
    do {
      return WCSession(
        try SessionSetup(
          role: role, container: container, watchName: watchName, replyTimeout: replyTimeout))
    } catch {
      throw WCError(error, of: .activation)
    }
  }

  /// Removes the process's session: the next `default` is a new one, which may be configured.
  package static func replaceDefault() -> WCSession {
    process.withLock { Swift.exchange(&$0, with: WCSession(nil)) }
  }

  /// Starts work that changes the link; `endForGood()` cancels it, and waits until it has ended.
  func begin(_ work: @escaping @Sendable () async -> Void) {
    state.withLock { state in
      guard !state.hasEnded else { return }
      let number = state.nextWork
      state.nextWork += 1
      // Removes itself under the same lock, so not before it is noted.
      state.works[number] = Task {
        await work()
        self.state.withLock { _ = $0.works.removeValue(forKey: number) }
      }
    }
  }

  /// Ends the session permanently: its presence, its observations and its tasks. Messages under way
  /// end with an error. When this returns, its delegate and its handlers get no more calls.
  ///
  /// Waits for a running method of its delegate, however long that takes.
  package func endForGood() async {
    let works = state.withLock { state in
      state.hasEnded = true
      state.delegate = DelegateReference(nil)
      return Array(state.works.values)
    }
    // Released outside the lock.
    let layer = layer.withLock { $0.take() }
    _ = layer
    for work in works { work.cancel() }
    for work in works { await work.value }
    let link = await onQueue { session in session.close() }
    await link?.ended()
    // After all work that the lines above enqueued: the ends of messages, for example.
    await onQueue { _ in }
  }

  private func close() -> SessionLink? {
    let link = state.withLock { state in
      defer {
        state.link = nil
        state.activation = .notActivated
        state.isActivating = false
        state.activatesAgain = false
      }
      return state.link
    }
    link?.end()
    if let peer = setupIfKnown?.peer {
      peer.close()
      // Its handler holds this session.
      peer.refuseRequests()
    }
    return link
  }

  func onQueue<Result: Sendable>(
    _ body: @escaping @Sendable (WCSession) -> Result
  ) async -> Result {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: body(self)) }
    }
  }
}
