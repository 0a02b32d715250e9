import Dispatch
import Synchronization
import Wormhole

/// The sessions of this process in a container.
extension EtcdContainer {
  /// How often a session is made again because the history was replaced meanwhile.
  private static let attempts = 3

  /// Returns the session of this process in the container, and creates one if there is none, or if
  /// it has ended. It lasts as long as a caller keeps it.
  ///
  /// - Complexity: One request at its first use.
  func session() throws(EtcdError) -> EtcdSession {
    let deadline = callDeadline
    // The caller before has its own deadline, which may be later.
    guard
      shared.making.wait(timeout: .now() + (deadline - .now).dispatchInterval) == .success
    else { throw EtcdError(.unreachable, "no lease was granted in time") }
    defer { shared.making.signal() }
    if let session = shared.sessions.withLock({ $0.ofProcess }) {
      if session.isAlive { return session }
      session.endWithHistory(until: deadline)
    }
    for _ in 0..<Self.attempts {
      let new = try EtcdSession(client, lifetime: location.lifetime, until: deadline)
      let isFirst = shared.sessions.withLock { sessions in
        sessions.ofProcess = new
        return !exchange(&sessions.isFollowed, with: true)
      }
      if isFirst { shared.followers.addSession(of: shared) }
      if new.isAlive { return new }
      // The history was replaced while it was made.
      new.endWithHistory(until: deadline)
    }
    throw EtcdError.replaced
  }

  /// Makes a step under this process's session; once more under a new one if etcd has ended the
  /// session and this process has not learned of that yet.
  func underSession<Result>(_ step: (EtcdSession) throws -> Result) throws -> Result {
    let session = try session()
    do {
      return try step(session)
    } catch let error as EtcdError where error.code == .leaseGone {
      session.end()
      return try step(self.session())
    }
  }

  /// Creates a lease that ends at a time of day, in nanoseconds since 1970, and not before it.
  ///
  /// - Returns: Nil if that has passed.
  func grantLease(until expiry: Int64) throws(EtcdError) -> Int64? {
    let left = PublicationRecord.time(until: expiry)
    guard left > .zero else { return nil }
    // etcd counts whole seconds.
    let seconds = left.components.seconds + (left.components.attoseconds > 0 ? 1 : 0)
    return try client.grantLease(
      lifetime: .seconds(min(seconds, Self.longestLease)), until: callDeadline)
  }
}

extension EtcdContainer.Shared {
  var hasSession: Bool { sessions.withLock { $0.ofProcess?.isAlive == true } }

  /// Ends the session if its history was replaced since.
  func endFormerSession() {
    if let session = sessions.withLock(\.ofProcess), !session.isAlive {
      session.endWithHistory(until: .now + session.lifetime)
    }
  }
}
