import Dispatch
import Synchronization
import WormholeSystem

/// Leases without keys, because the values that expired with them were replaced or removed. If not
/// ended, they would pile up until they expire.
///
/// They are revoked in the background, and at the latest when the process exits. One whose end is
/// lost expires by itself.
enum RetiredLeases {
  private static let queue = Blocking.queue()
  /// How to revoke each remaining one, until a deadline.
  private static let left = Mutex<[Int64: @Sendable (ContinuousClock.Instant) -> Void]>([:])
  private static let endsAtExit: Void = Program.atExit {
    let deadline = ContinuousClock.now + EtcdSession.exitWait
    for revoke in RetiredLeases.left.withLock({ $0.values }) { revoke(deadline) }
  }
  /// How long one may take.
  private static let patience: Duration = .seconds(2)

  /// Revokes a lease soon; does not wait.
  ///
  /// - Parameters:
  ///   - key: Its key; as long as another hangs on it, too, it stays.
  ///   - history: The history in which its key was replaced. A snapshot brings back the key
  ///   that hung on it, so it ends in its own history only.
  static func add(_ number: Int64, for key: [UInt8], of client: EtcdClient, history: Int) {
    let processID = Program.processID
    let revoke = { @Sendable (deadline: ContinuousClock.Instant) in
      guard history == client.history, processID == Program.processID else { return }
      // If this fails, the lease expires by itself.
      try? client.revokeLease(number, ofKeysIn: .key(key), until: deadline)
    }
    left.withLock { $0[number] = revoke }
    _ = endsAtExit
    queue.async {
      revoke(.now + patience)
      left.withLock { $0[number] = nil }
    }
  }
}
