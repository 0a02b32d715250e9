import Synchronization
import Wormhole
import WormholeSystem

/// The room for the pieces of files in a cluster's database.
///
/// etcd keeps the history of every key until it is compacted, so files received long ago still fill
/// the database. A full one refuses every change of every program. So a sender of files counts what
/// it puts, compacts the history, and waits, or gives up, while half of the database is in use: the
/// other half is for everything else.
///
/// **What is compacted.** Only the history before `age`, and while a sender waits the history
/// before `urgentAge`: a lost answer is looked up in the history since the request, and an
/// interrupted watch continues there. If that has been compacted anyway, a change ends as
/// `outcomeUnknown`, and a watch reads its keys again. A process knows the age only of what came
/// after its first look, so one that begins in a full database waits for `urgentAge`.
///
/// **When etcd counts.** It determines what is in use when it commits, and counts the pages of a
/// compaction as free with a commit after that. While nothing is written, the number does not
/// change. So a waiting sender writes something itself.
package final class EtcdRoom: Sendable {
  private struct State {
    /// The quota of the members' databases; nil before the first look.
    var quota: Int64?
    /// The number of bytes that may be put before the next look.
    var budget: Int64 = 0
    /// Revisions, and when they were the newest; the oldest first.
    var marks: [(time: ContinuousClock.Instant, revision: Int64)] = []
    var compacted: Int64 = 0
  }

  /// The least time that history stays, and the same while a sender waits.
  private let age: Duration
  private let urgentAge: Duration
  private let patience: Duration
  private let state = Mutex(State())

  /// etcd's own default, for members that do not report theirs.
  private static let standardQuota: Int64 = 2 << 30
  private static let largestBudget: Int64 = 16 << 20
  private static let pause: Duration = .milliseconds(100)

  /// - Parameter patience: How long a sender waits for room.
  package init(age: Duration = .seconds(5), patience: Duration = .seconds(30)) {
    self.age = age
    urgentAge = age / 5
    self.patience = patience
  }

  /// Waits until there is room for a piece; costs a request now and then.
  ///
  /// - Parameters:
  ///   - check: Called now and then while it waits; throws to end the wait.
  /// - Throws: `WormholeError.noSpace` if half of the database stays in use.
  func take(_ bytes: Int, on container: EtcdContainer, _ check: () throws -> Void) throws {
    let end = ContinuousClock.now + patience
    while true {
      note(container.client.cluster.moment.revision)
      let isEnough = state.withLock { state in
        state.budget -= Int64(bytes)
        return state.budget >= 0
      }
      if isEnough { return }
      let (used, limit) = try renew(for: bytes, on: container)
      if used + Int64(bytes) <= limit { return }
      guard ContinuousClock.now < end else {
        throw WormholeError(
          .noSpace, "send a file", path: container.location.description,
          reason: "\(used >> 20) MiB of etcd's database are in use, and files may fill it to "
            + "\(limit >> 20) MiB, half of its quota",
          remedy: "wait until other files are received, or raise --quota-backend-bytes")
      }
      try check()
      try commit(container.client, until: container.callDeadline)
      pauseThread(Self.pause)
    }
  }

  /// Writes something that is not a key: no watch reports it, and it adds nothing to the history.
  private func commit(
    _ client: EtcdClient, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) {
    do throws(EtcdError) {
      let lease = try client.grantLease(lifetime: .seconds(1), until: deadline)
      try client.revokeLease(lease, until: deadline)
    } catch {
      // The database is full despite all senders: then this one continues to wait.
      guard error.code == .noSpace else { throw error }
    }
  }

  /// Looks before the first piece, if that will need it.
  func look(on container: EtcdContainer) throws {
    note(container.client.cluster.moment.revision)
    if state.withLock({ $0.budget <= 0 }) { _ = try renew(for: 0, on: container) }
  }

  /// Determines the number of bytes until the next look, and compacts.
  ///
  /// - Returns: How much of the database is in use, and how much may be before a file has to wait.
  private func renew(
    for bytes: Int, on container: EtcdContainer
  ) throws(EtcdError) -> (used: Int64, limit: Int64) {
    let client = container.client
    let used = try client.status(until: container.callDeadline).usedBytes
    let known = state.withLock(\.quota)
    let quota = known ?? client.quota(until: container.callDeadline) ?? Self.standardQuota
    let limit = quota / 2
    let isFree = used + Int64(bytes) <= limit
    state.withLock { state in
      state.quota = quota
      state.budget = isFree ? min((limit - used) / 4, Self.largestBudget) : 0
    }
    try compact(client, isUrgent: !isFree, until: container.callDeadline)
    return (used, limit)
  }

  private func note(_ revision: Int64) {
    state.withLock { state in
      let last = state.marks.last
      guard last.map({ $0.time + urgentAge / 4 < .now }) ?? true else { return }
      state.marks.append((.now, revision))
    }
  }

  /// Compacts the history that is old enough, if that is more than a little.
  ///
  /// - Parameter isUrgent: Whether the freed pages are waited for.
  private func compact(
    _ client: EtcdClient, isUrgent: Bool, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) {
    let limit = ContinuousClock.now - (isUrgent ? urgentAge : age)
    let revision = state.withLock { state -> Int64? in
      guard let last = state.marks.lastIndex(where: { $0.time <= limit }) else { return nil }
      state.marks.removeFirst(last)
      let revision = state.marks[0].revision
      guard revision > state.compacted else { return nil }
      state.compacted = revision
      return revision
    }
    guard let revision else { return }
    try client.compact(before: revision, waits: isUrgent, until: deadline)
  }
}
