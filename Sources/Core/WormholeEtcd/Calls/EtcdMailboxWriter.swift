import Synchronization
import Wormhole
import WormholeSystem
import WormholeToolkit

/// A writer into a mailbox on etcd.
///
/// Posts of several threads go through **lanes**, each with its own key that is compared and
/// replaced with each post; so a post whose answer is lost is recognized. A lane whose last post
/// remains in doubt is not used again.
final class EtcdMailboxWriter: MailboxWriter {
  /// The state of a mailbox.
  private struct Target: Equatable, Sendable {
    /// The owner's key, which is put once.
    let owner: KeyValue
    /// The revision of the last sweep of its lanes; 0 before the first.
    let sweep: Int64

    /// - Parameter items: The owner's key and that of the sweep, as they were found.
    init?(_ items: [KeyValue?]) {
      guard let owner = items.first ?? nil else { return nil }
      self.owner = owner
      sweep = (items.last ?? nil)?.modified ?? 0
    }
  }

  /// One post at a time.
  private struct Lane: Sendable {
    let target: Target
    let number: Int
    /// The revision of its key's last change; 0 before the first. No other lane changes it.
    var base: Int64 = 0
  }

  private struct State {
    var target: Target?
    /// The order of the last entry.
    var last: UInt64 = 0
    var admission: Admission
    /// The lanes that no thread uses now.
    var lanes: [Lane] = []
    var laneCount = 0
  }

  private enum Attempt {
    case posted(revision: Int64)
    /// Nothing was posted: the mailbox has another owner by now, or none, or has removed the lane.
    case refused(Target?)
  }

  private let etcd: EtcdContainer
  private let keys: MailboxKeys
  private let sender = Nonce.next()
  private let state: Mutex<State>

  var path: String { keys.path }

  init(_ etcd: EtcdContainer, to address: String, _ admission: Admission) {
    self.etcd = etcd
    keys = MailboxKeys(etcd, address)
    state = Mutex(State(admission: admission))
  }

  func post(_ bytes: [UInt8], until deadline: ContinuousClock.Instant?) throws -> PostOutcome {
    let etcd = etcd.call(within: deadline)
    guard try admits(bytes.count, on: etcd) else { return .full }
    try EtcdContainer.requireSize(
      of: bytes, "post into a mailbox", path: path, remedy: ", or raise --max-request-bytes")
    let entry = state.withLock { state in
      state.last = EntryFile.order(after: state.last, now: bootTimeNanoseconds())
      return EntryFile(order: state.last, sender: sender, count: 1, bytes: bytes.count)
    }
    var target = try knownTarget(on: etcd)
    // It may be created again now and then, after its session has ended.
    for _ in 0..<3 {
      guard let current = target else { return .gone }
      var lane = takeLane(current)
      switch try attempt(entry, bytes, in: lane, on: etcd) {
      case .posted(let revision):
        lane.base = revision
        state.withLock { state in
          state.admission.noteStored(entry)
          if state.target == current { state.lanes.append(lane) }
        }
        return .posted
      case .refused(let new):
        know(new)
        target = new
      }
    }
    return .gone
  }

  /// Posts; a transaction whose answer is lost is made again, and recognized by the lane.
  ///
  /// - Throws: `EtcdError`: `.outcomeUnknown` if it remains unknown; otherwise nothing was posted.
  private func attempt(
    _ entry: EntryFile, _ bytes: [UInt8], in lane: Lane, on etcd: EtcdContainer
  ) throws(EtcdError) -> Attempt {
    let key = keys.lane(lane.number, of: sender)
    let mark = Array(entry.text.utf8)
    let owner = lane.target.owner
    var transaction = EtcdTransaction(
      if: owner.unchanged + [.modified(key, at: lane.base)],
      then: [
        .put(key: keys.entry(entry), value: bytes, lease: owner.lease),
        .put(key: key, value: mark, lease: owner.lease),
      ], otherwise: [.key(keys.owner), .key(keys.sweep), .key(key)])
    // A late copy of a first post must not follow a sweep that has removed its lane.
    if lane.base == 0 {
      transaction.conditions.append(.modified(keys.sweep, at: lane.target.sweep))
    }
    return try etcd.settling { inDoubt throws(EtcdError) in
      let outcome: EtcdTransaction.Outcome
      do throws(EtcdError) {
        outcome = try etcd.commit(transaction)
      } catch {
        // The owner's lease, so the mailbox has ended.
        guard error.code == .leaseGone, !inDoubt else { throw error }
        return .refused(nil)
      }
      if outcome.succeeded { return .posted(revision: outcome.revision) }
      let found = outcome.results.map(\.items.first)
      if let last = found.last ?? nil, last.value == mark {
        return .posted(revision: last.modified)
      }
      // It may have been delivered before its mailbox ended. While that lives, the lane would show it.
      let lives = found.first.map { $0 == lane.target.owner } ?? false
      guard !inDoubt || lives else { throw EtcdError(.leaseGone, "the mailbox has ended") }
      return .refused(Target(found.dropLast()))
    }
  }

  private func takeLane(_ target: Target) -> Lane {
    state.withLock { state in
      if let lane = state.lanes.popLast(), lane.target == target { return lane }
      state.laneCount += 1
      return Lane(target: target, number: state.laneCount)
    }
  }

  private func knownTarget(on etcd: EtcdContainer) throws(EtcdError) -> Target? {
    if let known = state.withLock({ $0.target }) { return known }
    let found = try etcd.commit(
      EtcdTransaction(if: [], then: [.read(.key(keys.owner)), .read(.key(keys.sweep))]))
    let target = Target(found.results.map(\.items.first))
    know(target)
    return target
  }

  private func know(_ target: Target?) {
    state.withLock { state in
      // The lanes have ended with the former mailbox, or differ in a replaced history, or were swept.
      state.lanes = []
      state.target = target
    }
  }

  private func admits(_ size: Int, on etcd: EtcdContainer) throws -> Bool {
    if state.withLock({ $0.admission.allows(1, size) }) { return true }
    let waiting = try etcd.read(keys.entries, keysOnly: true).items
      .compactMap { keys.entry(of: $0.key) }
    return state.withLock { $0.admission.note(waiting: waiting, for: 1, size) }
  }
}
