import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// The followers of a container that are still in use, whose ranges are compared with their events
/// now and then, because old servers lose events.
///
/// One request compares up to 128 ranges, one after another on one connection, at a different time
/// in each process. A server without the fault is not asked.
final class EtcdFollowers: Sendable {
  /// The longest pause between two comparisons.
  private static let interval: Duration = .seconds(30)
  /// A pause's random factor, so that processes that began together do not ask together.
  private static let jitter: ClosedRange<Double> = 0.6...1
  private static let patience = CallLimit.standardWait

  private struct State {
    var all: [Weak<KeyFollower>] = []
    var isTicking = false
    /// The session's container, if there ever was a session.
    var hasSession = false
    /// The member that serves the watches, by its address and the number of its connection, and
    /// whether it may lose events; nil before it was asked.
    var member: (connection: String, losesEvents: Bool)?
  }

  private let state = Mutex(State())

  /// Compares a follower's range now and then, as long as it is in use.
  func add(_ follower: KeyFollower, of shared: EtcdContainer.Shared) {
    begin(shared) { $0.all.append(Weak(object: follower)) }
  }

  /// Lets a process with a session that makes no other requests notice a replaced history.
  func addSession(of shared: EtcdContainer.Shared) { begin(shared) { $0.hasSession = true } }

  private func begin(_ shared: EtcdContainer.Shared, _ change: (inout State) -> Void) {
    let isFirst = state.withLock { state in
      change(&state)
      return !exchange(&state.isTicking, with: true)
    }
    if isFirst { checkLater(Blocking.queue(), shared) }
  }

  private func checkLater(_ queue: BlockingQueue, _ shared: EtcdContainer.Shared) {
    let pause = Self.interval * Double.random(in: Self.jitter)
    queue.after(pause) { [weak self, weak shared] in
      guard let self, let shared else { return }
      if checkAll(of: shared) { checkLater(queue, shared) }
    }
  }

  /// Compares all ranges; blocks.
  ///
  /// - Returns: Whether there are any followers, or was a session.
  func checkAll(of shared: EtcdContainer.Shared) -> Bool {
    let (followers, isNeeded) = state.withLock { state in
      state.all.removeAll { $0.object == nil }
      let followers = state.all.compactMap(\.object)
      state.isTicking = !followers.isEmpty || state.hasSession
      return (followers, state.isTicking)
    }
    let call = EtcdContainer(shared).until(.now + Self.patience)
    // If it fails, nothing is changed, and the next one follows half a minute later.
    try? compare(followers, on: call)
    // Its answer shows whether the history was replaced; with followers, the watches' connection
    // shows it. If it fails, the next one follows half a minute later.
    if followers.isEmpty, shared.hasSession { _ = try? call.item(call.formatKey) }
    return isNeeded
  }

  private func compare(
    _ followers: [KeyFollower], on call: EtcdContainer
  ) throws(EtcdError) {
    guard !followers.isEmpty, losesEvents(call) else { return }
    for some in followers.parts(of: EtcdContainer.maximumOperations) {
      let outcome = try call.commit(
        EtcdTransaction(if: [], then: some.map { .glance($0.range) }))
      for (follower, result) in zip(some, outcome.results) {
        guard case .glance(let count, let newest) = result else { continue }
        follower.check(count: count, newest: newest, at: outcome.moment)
      }
    }
  }

  /// Whether the member that serves the watches may lose events, which it is asked once.
  private func losesEvents(_ call: EtcdContainer) -> Bool {
    guard let endpoint = call.client.watches.endpoint else { return true }
    let connection = "\(call.client.watches.madeConnections) \(endpoint)"
    if let known = state.withLock(\.member), known.connection == connection {
      return known.losesEvents
    }
    // A member that does not answer now is asked again with the next comparison.
    guard let status = try? call.client.status(of: endpoint, until: call.callDeadline) else {
      return true
    }
    let losesEvents = Self.losesEvents(status.version)
    state.withLock { $0.member = (connection, losesEvents) }
    return losesEvents
  }

  /// Whether a version of etcd loses events after a compaction (fixed in 3.4.31 and 3.5.13).
  static func losesEvents(_ version: String) -> Bool {
    let parts = version.split(separator: ".").map { Int($0.prefix(while: \.isNumber)) ?? 0 }
    guard parts.count >= 3, parts[0] == 3 else { return parts.first ?? 0 < 3 }
    switch parts[1] {
    case 4: return parts[2] < 31
    case 5: return parts[2] < 13
    default: return parts[1] < 4
    }
  }
}
