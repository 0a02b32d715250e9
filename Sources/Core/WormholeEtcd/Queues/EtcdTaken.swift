import Synchronization
import Wormhole
import WormholeInspection
import WormholePropertyLists

/// A batch that a consumer has taken on etcd, and its owner record. Each step is one transaction, guarded
/// by the consumer's key and the owner record's last state.
final class EtcdTaken: TakenBatchStorage {
  private let own: EtcdConsumerMembership
  private let name: EntryFile
  private let state: Mutex<State>

  private struct State {
    var owner: BatchOwner
    /// Its key.
    var written: KeyValue
    /// A change that was perhaps made, and the owner record that it put; nil for the end of the batch.
    var doubt: (owner: BatchOwner?, value: [UInt8])?
    /// The taken files of its entries, by their ids.
    var files: [String: KeyValue] = [:]
  }

  private var store: EtcdQueue { own.store }

  init(_ place: EtcdConsumerMembership, _ name: EntryFile, owner: BatchOwner, written: KeyValue) {
    own = place
    self.name = name
    state = Mutex(State(owner: owner, written: written))
  }

  func confirm(looks: Bool, until deadline: ContinuousClock.Instant?) throws {
    try own.confirm(store.call(within: deadline))
    guard looks else { return }
    let isThere = try store.item(store.consumerKey(own.id)) != nil
    guard try isThere || own.isClosedWithoutSuccessor(store.call()) else {
      throw store.queue.replaced()
    }
  }

  var fence: EtcdTransaction.Condition { own.fence }

  func successor() throws -> LeaseHolder? {
    let store = store.call()
    guard let owner = try store.item(store.ownerKey(name)) else { return nil }
    let consumer = try store.item(store.consumerKey(BatchOwner(owner.value).consumer))
    let words = consumer.map { String(decoding: $0.value, as: UTF8.self).split(separator: " ") }
    guard let words, words.count > 2 else { return nil }
    return try store.queue.role.members().first { $0.id == words[2] }?.holder
  }

  func takeAttachment(_ id: String) throws {
    let item = try taken(id)
    let isMovedAway = try knownOwner().marks[BatchOwner.movedAwayMark + id] != nil
    let place = try store.queue.openOrMake()
    try place.prepare(own.directory)
    guard let found = item.flatMap({ AttachmentManifest($0.value) }) else { return }
    try place.receive(id, by: own.directory, isMovedAway: isMovedAway) {
      try store.download(found, into: $0)
    }
  }

  /// Takes a file, once: no other process changes it while this consumer has the entry.
  private func taken(_ id: String) throws -> KeyValue? {
    if let known = state.withLock({ $0.files[id] }) { return known }
    let item = try store.takeAttachment(id, if: own.fence)
    state.withLock { $0.files[id] = item }
    return item
  }

  func noteMovedAway(_ id: String) throws {
    try change { $0.marks[BatchOwner.movedAwayMark + id] = "" }
  }

  func log(_ line: String, until deadline: ContinuousClock.Instant?) throws -> Bool {
    // The whole owner record is written again with each line.
    try change(until: deadline) { $0.deliveries = DeliveryLog.reduced($0.deliveries + line) }
    return false
  }

  func mark(_ index: Int, _ text: String?, durability: Durability) throws {
    // A mark that is in doubt may still be made; after another change of the owner record it cannot.
    let mustChange = state.withLock {
      text != nil || $0.doubt != nil || $0.owner.marks["\(index)"] != nil
    }
    if mustChange { try change { $0.marks["\(index)"] = text } }
  }

  func marked(_ index: Int) throws -> String? {
    try own.confirm(store.call())
    return try knownOwner().marks["\(index)"]
  }

  // MARK: Settling

  func settle(_ end: Settlement, until deadline: ContinuousClock.Instant?) throws {
    var operations: [EtcdTransaction.Operation] = []
    if end.isKept, let reason = end.status.reason, let payload = end.entry.payload {
      operations.append(try store.keeping(payload, end.id, reason: reason))
    }
    // The receipt of a processed entry is removed a day later, and nothing else records the time.
    let isNoted =
      end.status != .processed
      || end.entry.keepsReceipt && end.entry.receiptTerm == .dayAfterProcessing
    if isNoted { operations.append(try store.noting(end.status, of: end.id)) }
    var taken: KeyValue?
    if let file = end.entry.payload?.attachmentID, !end.isKept {
      // It still waits if the entry was not delivered.
      taken = try self.taken(file)
      operations += store.removal(of: taken)
    }
    if end.isLast {
      let leaving = end.isFinal ? own.registration.withLock { $0() } : nil
      try finish(operations, leaving: leaving, until: deadline)
    } else {
      try change(operations, until: deadline) { owner in
        owner.settled.insert(end.id.index)
        owner.marks["\(end.id.index)"] = nil
      }
    }
    if let taken { store.discard(taken) }
    guard let file = end.entry.payload?.attachmentID else { return }
    // This consumer removes it, or the next one of this machine.
    try? store.queue.open()?.removeAttachmentDirectory(
      AttachmentLayout.takenPath(file, by: own.directory))
  }

  func finish(hasNotes: Bool, until deadline: ContinuousClock.Instant?) throws {
    try finish([], until: deadline)
  }

  /// Ends an invalid batch, with the failure of each of its entries. As much of it is kept as fits
  /// into one request with the rest.
  func putAside(
    _ bytes: [UInt8], as status: QueueEntryStatus, until deadline: ContinuousClock.Instant?
  ) throws {
    var rest = Set(name.indices).subtracting(state.withLock { $0.owner.settled }).sorted()[...]
    while rest.count > EtcdQueue.maximumCount {
      let some = rest.prefix(EtcdQueue.maximumCount)
      rest = rest.dropFirst(some.count)
      try change(notes(some, status), until: deadline) { $0.settled.formUnion(some) }
    }
    try finish(
      notes(rest, status) + [
        .put(
          key: store.key(.foreign, name.text),
          value: Array(bytes.prefix(EtcdContainer.maximumBytes)))
      ],
      until: deadline)
  }

  private func notes(
    _ indices: ArraySlice<Int>, _ status: QueueEntryStatus
  ) throws -> [EtcdTransaction.Operation] {
    try indices.map { try store.noting(status, of: .init(batch: name, index: $0)) }
  }

  // MARK: Changing

  /// Changes the owner record, with further steps at once.
  private func change(
    _ operations: [EtcdTransaction.Operation] = [],
    until deadline: ContinuousClock.Instant? = nil, _ edit: (inout BatchOwner) -> Void
  ) throws {
    try state.withLock { state in
      // Only here, because the thread may have waited for the lock.
      let store = store.call(within: deadline)
      try settleDoubt(&state, store)
      var owner = state.owner
      edit(&owner)
      let commitRecord = EtcdContainer.CommitRecord(
        key: state.written.key, base: state.written, value: try owner.bytes(stamp: Nonce.next()))
      do throws(EtcdError) {
        let outcome = try fenced(store) { fence throws(EtcdError) in
          try store.container.commit(EtcdTransaction(if: fence, then: operations), commitRecord)
        }
        guard outcome.succeeded else { throw EtcdError(.leaseGone, "") }
        state.owner = owner
        state.written = commitRecord.item(at: outcome.revision)
      } catch {
        if error.code == .outcomeUnknown { state.doubt = (owner, commitRecord.value) }
        throw error.code == .leaseGone ? store.queue.replaced() : error as any Error
      }
    }
  }

  /// Removes the batch and the owner record, with further steps at once.
  ///
  /// - Parameter registration: The registration that leaves with it, if it still holds.
  private func finish(
    _ operations: [EtcdTransaction.Operation], leaving registration: EtcdRegistration? = nil,
    until deadline: ContinuousClock.Instant?
  ) throws {
    try state.withLock { state in
      let store = store.call(within: deadline)
      try settleDoubt(&state, store)
      let base = state.written
      let steps = [.delete(.key(base.key)), .delete(.key(store.entryKey(name)))] + operations
      let wasInDoubt = state.doubt != nil
      var leaving = registration?.leaving
      do {
        try store.container.settling { inDoubt in
          while true {
            let outcome = try self.fenced(store) { fence throws(EtcdError) in
              try store.container.commit(
                EtcdTransaction(
                  if: fence + base.unchanged + (leaving?.conditions ?? []),
                  then: steps + (leaving?.operations ?? [])))
            }
            if outcome.succeeded { return }
            let mayBeOwn = inDoubt || wasInDoubt
            if try mayBeOwn && self.wasDeleted(since: base.modified, store) { return }
            guard leaving != nil else { throw store.queue.replaced() }
            // Perhaps only the registration was lost.
            leaving = nil
          }
        }
        if leaving != nil { registration?.left() }
        state.doubt = nil
        // They went with the owner record.
        state.owner.marks = [:]
      } catch let error as EtcdError {
        guard error.code == .outcomeUnknown || error.code == .compacted else { throw error }
        state.doubt = (nil, [])
        throw EtcdError(.outcomeUnknown, error.reason)
      }
    }
  }

  /// Makes a step of this consumer. A closed consumer still ends its entries while no other process
  /// consumes; the owner record's revision proves in the same step that no other got them.
  private func fenced(
    _ store: EtcdQueue,
    _ step: ([EtcdTransaction.Condition]) throws(EtcdError) -> EtcdTransaction.Outcome
  ) throws(EtcdError) -> EtcdTransaction.Outcome {
    let outcome = try step([own.fence])
    guard !outcome.succeeded, try own.isClosedWithoutSuccessor(store.call()) else {
      return outcome
    }
    return try step([])
  }

  /// Whether the owner record's first change was its end, which only its own consumer can have made: a
  /// successor replaces it first, and there is none as long as the consumer's key exists, or would
  /// exist if it had not left.
  ///
  /// - Throws: `EtcdError`: `.compacted` if the history that shows it was compacted.
  private func wasDeleted(since base: Int64, _ store: EtcdQueue) throws(EtcdError) -> Bool {
    let key = store.ownerKey(name)
    let items = try store.read([.key(key), .key(store.consumerKey(own.id))]).items
    guard items[0].first?.modified != base else { return false }
    if items[0].isEmpty, !items[1].isEmpty || own.isCertain { return true }
    return try store.client.firstChange(
      of: key, from: base + 1, until: store.container.callDeadline
    ).kind
      == .delete
  }

  private func knownOwner() throws -> BatchOwner {
    try state.withLock { state in
      try settleDoubt(&state, store)
      return state.owner
    }
  }

  private func settleDoubt(_ state: inout State, _ store: EtcdQueue) throws {
    guard let doubt = state.doubt, let owner = doubt.owner else { return }
    let now = try store.item(store.ownerKey(name))
    if let now, now.value == doubt.value {
      state.owner = owner
      state.written = now
    }
    state.doubt = nil
  }
}
