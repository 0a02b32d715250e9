import Containers
import Entries
import EtcdClient
import PropertyLists
import QueueFiles
import Synchronization

/// A batch that a consumer has taken on etcd, and its claim. Each step is one transaction that the
/// consumer's key and the claim as it was last guard.
final class EtcdTaken: TakenStore {
  private let own: EtcdConsumerPlace
  private let name: EntryFile
  private let state: Mutex<State>

  private struct State {
    var claim: EtcdClaim
    /// The revision of its last change.
    var claimed: Int64
    /// A change that was perhaps made, and what it put; nil for the end of the batch.
    var doubt: (claim: EtcdClaim?, value: [UInt8])?
  }

  private var store: EtcdQueue { own.store }

  init(_ place: EtcdConsumerPlace, _ name: EntryFile, _ claim: EtcdClaim, claimed: Int64) {
    own = place
    self.name = name
    state = Mutex(State(claim: claim, claimed: claimed))
  }

  func confirm() throws { try own.confirm() }

  func takeAttachment(_ id: String) throws {
    try store.confirmAttachments()
  }

  func log(_ line: String) throws -> Bool {
    try change { $0.deliveries += line }
    return false
  }

  func mark(_ index: Int, _ text: String, _ durability: Durability) throws {
    try change { $0.marks["\(index)"] = text }
  }

  func unmark(_ index: Int) throws {
    guard state.withLock({ $0.claim.marks["\(index)"] != nil }) else { return }
    try change { $0.marks["\(index)"] = nil }
  }

  func marked(_ index: Int) throws -> String? {
    try own.confirm()
    return state.withLock { $0.claim.marks["\(index)"] }
  }

  // MARK: Settling

  func settle(_ end: Settlement) throws {
    var operations: [EtcdTransaction.Operation] = []
    if end.isKept, let reason = end.status.reason, let payload = end.entry.payload {
      operations.append(try store.keeping(payload, end.id, reason))
    }
    // The receipt of a processed entry is removed a day later, and nothing else tells when that was.
    let isNoted =
      end.status != .processed
      || end.entry.keepsReceipt && end.entry.receiptTerm == .dayAfterProcessing
    if isNoted { operations.append(try store.noting(end.status, of: end.id)) }
    if end.isLast {
      try finish(operations)
    } else {
      try change(operations) { claim in
        claim.settled.insert(end.id.index)
        claim.marks["\(end.id.index)"] = nil
      }
    }
  }

  func finish(hasNotes: Bool) throws { try finish([]) }

  func clear(_ end: Settlement) {}

  /// Ends a batch that is none, with the failure of each of its entries.
  func putAside(_ bytes: [UInt8], as status: QueueEntryStatus) throws {
    var rest = Set(0..<name.count).subtracting(state.withLock { $0.claim.settled }).sorted()[...]
    while rest.count > EtcdQueue.maximumCount {
      let some = rest.prefix(EtcdQueue.maximumCount)
      rest = rest.dropFirst(some.count)
      try change(notes(some, status)) { $0.settled.formUnion(some) }
    }
    try finish(notes(rest, status) + [.put(key: store.key("x/" + name.text), value: bytes)])
  }

  private func notes(
    _ indices: ArraySlice<Int>, _ status: QueueEntryStatus
  ) throws -> [EtcdTransaction.Operation] {
    try indices.map { try store.noting(status, of: .init(batch: name, index: $0)) }
  }

  // MARK: Changing

  /// Changes the claim, with further steps at once.
  private func change(
    _ operations: [EtcdTransaction.Operation] = [], _ edit: (inout EtcdClaim) -> Void
  ) throws {
    try state.withLock { state in
      try settleDoubt(&state)
      var claim = state.claim
      edit(&claim)
      let value = try claim.bytes(stamp: Nonce.next())
      do throws(EtcdError) {
        let outcome = try store.container.commit(
          EtcdTransaction(if: [own.fence], then: operations),
          .init(
            key: store.claimKey(name), base: state.claimed, seen: state.claimed, value: value),
          until: store.soon)
        guard outcome.succeeded else { throw EtcdError(.leaseGone, "") }
        state.claim = claim
        state.claimed = outcome.revision
      } catch {
        if error.code == .outcomeUnknown { state.doubt = (claim, value) }
        throw error.code == .leaseGone ? store.queue.replaced() : error as any Error
      }
    }
  }

  /// Removes the batch and the claim, with further steps at once.
  private func finish(_ operations: [EtcdTransaction.Operation]) throws {
    try state.withLock { state in
      try settleDoubt(&state)
      let (key, base) = (store.claimKey(name), state.claimed)
      let deadline = store.soon
      let change = EtcdTransaction(
        if: [own.fence, .modified(key, at: base)],
        then: [.delete(.key(key)), .delete(.key(store.entryKey(name)))] + operations)
      do {
        let queue = store.queue
        let wasInDoubt = state.doubt != nil
        try store.changing(until: deadline) { inDoubt in
          let outcome = try store.client.commit(change, until: deadline)
          if outcome.succeeded { return .done(()) }
          if try (inDoubt || wasInDoubt) && self.wasDeleted(since: base, until: deadline) {
            return .done(())
          }
          throw queue.replaced()
        }
        state.doubt = nil
      } catch let error as EtcdError {
        if error.code == .outcomeUnknown { state.doubt = (nil, []) }
        throw error
      }
    }
  }

  /// Whether the claim's first change was its end, which only its own consumer can have made: a
  /// successor replaces it first, and there is none as long as the consumer's own key exists.
  private func wasDeleted(
    since base: Int64, until deadline: ContinuousClock.Instant
  ) throws(EtcdError) -> Bool {
    let key = store.claimKey(name)
    let items = try store.read([.key(key), .key(store.consumerKey(own.id))], until: deadline).items
    guard items[0].first?.modified != base else { return false }
    if items[0].isEmpty, !items[1].isEmpty { return true }
    do throws(EtcdError) {
      return try store.client.firstChange(of: key, from: base + 1, until: deadline).kind == .delete
    } catch {
      guard error.code == .compacted else { throw error }
      throw EtcdError(.outcomeUnknown, "the history that tells it was compacted")
    }
  }

  /// Finds out what became of an earlier change.
  private func settleDoubt(_ state: inout State) throws {
    guard let doubt = state.doubt, let claim = doubt.claim else { return }
    let now = try store.read([.key(store.claimKey(name))], until: store.soon).items[0].first
    if let now, now.value == doubt.value {
      state.claim = claim
      state.claimed = now.modified
    }
    state.doubt = nil
  }
}
