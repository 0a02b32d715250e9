import Dispatch
import Synchronization
import WormholeSystem

/// Leases on which no key hangs any more, because the values that expired with them were replaced or
/// removed. Without an end of their own they would pile up until they expire.
///
/// They are revoked in the background, and at the latest when the process exits. One whose end is
/// lost expires by itself.
enum RetiredLeases {
  private struct Lease: Sendable {
    let client: EtcdClient
    let number: Int64
    /// A snapshot brings the key back that hung on it, so it ends in its own history only.
    let history: Int
    let processID: Int32

    func revoke(until deadline: ContinuousClock.Instant) {
      guard history == client.history, processID == Program.processID else { return }
      // If this fails, the lease expires by itself.
      _ = try? client.revokeLease(number, until: deadline)
    }
  }

  private struct State: Sendable {
    var leases: [Lease] = []
    var isRevoking = false
  }

  private static let state = Mutex(State())
  private static let endsAtExit: Void = Program.atExit {
    RetiredLeases.revokeAll(until: .now + RetiredLeases.exitWait)
  }
  /// How long one may take.
  private static let patience: Duration = .seconds(2)
  /// How long an exit of the process waits for etcd.
  fileprivate static let exitWait: Duration = .milliseconds(250)

  /// Revokes a lease soon; does not wait.
  ///
  /// - Parameter history: The history in which its key was replaced.
  static func add(_ number: Int64, of client: EtcdClient, history: Int) {
    let lease = Lease(
      client: client, number: number, history: history, processID: Program.processID)
    let mustBegin = state.withLock { state in
      state.leases.append(lease)
      return !exchange(&state.isRevoking, with: true)
    }
    _ = endsAtExit
    if mustBegin { Blocking.queue().async { revokeAll(until: nil) } }
  }

  /// - Parameter end: The end of all; nil for a time for each.
  fileprivate static func revokeAll(until end: ContinuousClock.Instant?) {
    while let lease = state.withLock({ state -> Lease? in
      state.isRevoking = !state.leases.isEmpty
      return state.leases.first
    }) {
      lease.revoke(until: end ?? .now + patience)
      // The exit may have ended it as well.
      state.withLock { state in
        if state.leases.first?.number == lease.number { state.leases.removeFirst() }
      }
    }
  }
}
