import Synchronization
import Wormhole
import WormholeSystem

/// The sessions of this process in a container.
extension EtcdContainer {
  /// How often a session is made again because the history was replaced meanwhile.
  private static let attempts = 3

  /// Returns the session of this process in the container, and creates one if there is none, or if
  /// it has ended. It lasts as long as a caller keeps it.
  package func session(
    until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> EtcdSession {
    try session(
      { $0.ofProcess }, { $0.ofProcess = $1 },
      { () throws(EtcdError) in
        try EtcdSession(client, lifetime: location.lifetime, until: deadline)
      })
  }

  /// Returns the session for work that another process may continue: it lasts ten minutes longer.
  ///
  /// - Complexity: One request at its first use, and then one every 200 seconds.
  package func lastingSession(
    until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> EtcdSession {
    try session(
      { $0.lasting }, { $0.lasting = $1 },
      { () throws(EtcdError) in
        try EtcdSession(client, lifetime: Self.lastingLifetime, isLasting: true, until: deadline)
      })
  }

  private func session(
    _ known: (Sessions) -> EtcdSession?, _ keep: (inout Sessions, EtcdSession) -> Void,
    _ make: () throws(EtcdError) -> EtcdSession
  ) throws(EtcdError) -> EtcdSession {
    let made = shared.making.withLock { _ in
      Result { () throws(EtcdError) in
        if let session = shared.sessions.withLock({ known($0) }) {
          if session.isAlive { return session }
          session.endWithHistory()
        }
        for _ in 0..<Self.attempts {
          let new = try make()
          let isFirst = shared.sessions.withLock { sessions in
            keep(&sessions, new)
            defer { sessions.isFollowed = true }
            return !sessions.isFollowed
          }
          if isFirst { add(shared) }
          if new.isAlive { return new }
          // The history was replaced while it was made.
          new.endWithHistory()
        }
        throw EtcdError.replaced
      }
    }
    return try made.get()
  }
}

extension EtcdContainer.Shared {
  var hasSession: Bool { sessions.withLock { $0.ofProcess?.isAlive == true } }

  /// Ends the session if its history was replaced since.
  func endFormerSession() {
    if let session = sessions.withLock(\.ofProcess), !session.isAlive {
      session.endWithHistory()
    }
  }
}
