import PeerConnectivity

/// What receives messages and what receives files, as one.
protocol EntryReceiver: Sendable {
  associatedtype Entry: Sendable
  func next(until deadline: ContinuousClock.Instant) async throws -> Entry?
  func isIdle() throws -> Bool
  func end()
}

extension PeerReceiver: EntryReceiver {}
extension PeerFileReceiver: EntryReceiver {}
