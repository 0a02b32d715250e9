import Synchronization
import Wormhole
import WormholeSystem

/// A writer into a mailbox on etcd.
///
/// Posts of several threads go through **lanes**, each with its own key that is compared and
/// replaced with each post; so a post whose answer is lost is recognized. A lane whose last post
/// remains in doubt is not used again.
final class EtcdMailboxWriter: MailboxWriter {
  /// One post at a time.
  private struct Lane: Sendable {
    /// The owner's key, which is put once.
    let owner: KeyValue
    let number: Int
    /// The revision of its key's last change; 0 before the first. No other lane changes it.
    var base: Int64 = 0
  }

  private struct State {
    var owner: KeyValue?
    /// The order of the last entry.
    var last: UInt64 = 0
    var admission: Admission
    /// The lanes that no thread uses now.
    var lanes: [Lane] = []
    var laneCount = 0
  }

  private enum Attempt {
    case posted(revision: Int64)
    /// Nothing was posted: the mailbox has another owner by now, or none.
    case refused(KeyValue?)
  }

  private let etcd: EtcdContainer
  private let keys: MailboxKeys
  private let sender = Nonce.next()
  private let state: Mutex<State>

  var path: String { keys.path }
  let spansMachines = true

  init(_ etcd: EtcdContainer, _ keys: MailboxKeys, entries: Int, bytes: Int) {
    self.etcd = etcd
    self.keys = keys
    state = Mutex(State(admission: Admission(entries: entries, bytes: bytes)))
  }

  func post(
    _ bytes: [UInt8], until deadline: ContinuousClock.Instant?
  ) throws -> MailboxOutlet.Outcome {
    let deadline = etcd.soon(within: deadline)
    guard try admits(bytes.count, until: deadline) else { return .full }
    guard bytes.count <= EtcdContainer.maximumBytes else {
      throw AppGroupError(
        .tooLarge, "post into a mailbox", path: path,
        reason: "it has \(bytes.count) bytes, and a key on etcd at most "
          + "\(EtcdContainer.maximumBytes)",
        remedy: "send large content as a file, or raise --max-request-bytes")
    }
    let entry = state.withLock { state in
      state.last = EntryFile.order(after: state.last, now: bootTimeNanoseconds())
      return EntryFile(order: state.last, sender: sender, count: 1, bytes: bytes.count)
    }
    var owner = try knownOwner(until: deadline)
    // It may be created again now and then, after its session has ended.
    for _ in 0..<3 {
      guard let current = owner else { return .gone }
      var lane = takeLane(current)
      switch try attempt(entry, bytes, in: lane, until: deadline) {
      case .posted(let revision):
        lane.base = revision
        state.withLock { state in
          state.admission.noteStored(entry)
          if state.owner == current { state.lanes.append(lane) }
        }
        return .posted
      case .refused(let new):
        know(new)
        owner = new
      }
    }
    return .gone
  }

  /// Posts; a transaction whose answer is lost is made again, and recognized by the lane.
  ///
  /// - Throws: `EtcdError`: `.outcomeUnknown` if it remains unknown; otherwise nothing was posted.
  private func attempt(
    _ entry: EntryFile, _ bytes: [UInt8], in lane: Lane, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Attempt {
    let key = keys.lane(lane.number, of: sender)
    let mark = Array(entry.text.utf8)
    let transaction = EtcdTransaction(
      if: lane.owner.unchanged + [.modified(key, at: lane.base)],
      then: [
        .put(key: keys.entry(entry), value: bytes, lease: lane.owner.lease),
        .put(key: key, value: mark, lease: lane.owner.lease),
      ], otherwise: [.key(keys.owner), .key(key)])
    var doubt: EtcdError?
    var pause = Duration.milliseconds(5)
    while true {
      let outcome: EtcdTransaction.Outcome
      do throws(EtcdError) {
        outcome = try etcd.client.commit(transaction, until: deadline)
      } catch {
        switch error.code {
        // The owner's, so the mailbox has ended.
        case .leaseGone where doubt == nil: return .refused(nil)
        case .outcomeUnknown where doubt == nil: doubt = error
        case .unreachable where doubt != nil, .outcomeUnknown: break
        default: throw error
        }
        guard ContinuousClock.now + pause < deadline else {
          throw EtcdError(.outcomeUnknown, error.reason)
        }
        pauseThread(pause)
        pause = min(pause * 2, .milliseconds(200))
        continue
      }
      if outcome.succeeded { return .posted(revision: outcome.revision) }
      let found = outcome.results.map { result in
        if case .read(let items) = result { items.first } else { nil as KeyValue? }
      }
      if let last = found.last ?? nil, last.value == mark {
        return .posted(revision: last.modified)
      }
      // It may have been delivered before its mailbox ended.
      if let doubt { throw EtcdError(.outcomeUnknown, doubt.reason) }
      return .refused(found.first ?? nil)
    }
  }

  private func takeLane(_ owner: KeyValue) -> Lane {
    state.withLock { state in
      if let lane = state.lanes.popLast(), lane.owner == owner { return lane }
      state.laneCount += 1
      return Lane(owner: owner, number: state.laneCount)
    }
  }

  private func knownOwner(until deadline: ContinuousClock.Instant) throws(EtcdError) -> KeyValue? {
    if let known = state.withLock({ $0.owner }) { return known }
    let found = try etcd.client.page(.key(keys.owner), limit: 1, until: deadline)
    let owner = found.items.first
    know(owner)
    return owner
  }

  private func know(_ owner: KeyValue?) {
    state.withLock { state in
      // The lanes have ended with the former mailbox, or differ in a replaced history.
      state.lanes = []
      state.owner = owner
    }
  }

  private func admits(_ size: Int, until deadline: ContinuousClock.Instant) throws -> Bool {
    if state.withLock({ $0.admission.allows(1, size) }) { return true }
    let waiting = try etcd.client.read(keys.entries, keysOnly: true, until: deadline).items
      .compactMap { keys.entry(of: $0.key) }
    return state.withLock { $0.admission.note(waiting: waiting, for: 1, size) }
  }
}
