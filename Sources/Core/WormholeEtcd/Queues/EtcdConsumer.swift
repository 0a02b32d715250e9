import FoundationEssentials
import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// How a consumer on etcd gets batches: first those of consumers that are gone, then waiting ones.
/// Each is taken by a transaction, which counts as its first delivery; see `EtcdQueue`. The first one
/// may come with the consumer's key.
struct EtcdConsumer: ConsumerSource {
  private let own: EtcdConsumerMembership
  private let terms: DeliveryTerms
  private var waiting: WaitingEntries
  /// The batches that this consumer has taken, as long as its view shows them.
  private var taken: Set<EntryFile> = []

  private var store: EtcdQueue { own.store }

  init(_ place: EtcdConsumerMembership, _ terms: DeliveryTerms) {
    own = place
    self.terms = terms
    waiting = WaitingEntries(clock: terms.queue.clock, place.view.arrivals)
  }

  mutating func take(until deadline: ContinuousClock.Instant?) throws -> TakeResult {
    // One for all: if etcd is slow, each request would have its own second after the deadline.
    let call = store.call(within: deadline)
    try own.confirm(call)
    if let taking = try takeSeen(call) { return taking }
    // Entries that were stored before this call exist, whether or not the watch has reported them.
    try own.view.refresh(until: call.container.callDeadline)
    try own.confirm(call)
    return try takeSeen(call) ?? .nothing(until: waiting.due)
  }

  /// - Returns: nil if the view shows no batch that may be taken.
  private mutating func takeSeen(_ store: EtcdQueue) throws -> TakeResult? {
    let view = own.view
    let left = view.left(besides: taken)
    // It waited when its taking was prepared, and nothing preceded it.
    if let (name, commitRecord, item) = own.takeFirst(),
      let owner = left.first(where: { $0.batch == name })?.owner, owner.consumer == own.id
    {
      let written = commitRecord.item(at: owner.modified)
      return try accept(name, .init(consumer: own.id), written, item, store)
    }
    if let (name, owner) = left.first {
      return try takeOver(name, from: owner.consumer, store)
    }
    let mine = taken
    guard
      let name = try waiting.next(listing: { view.waiting().filter { !mine.contains($0) } })
    else {
      taken = taken.filter { view.hasEntry($0) }
      return nil
    }
    waiting.remove(name)
    if isToShare(name), try share(name, store) { return .again }
    return try take(name, BatchOwner(consumer: own.id), over: nil, store)
  }

  /// Lets it begin with the first waiting batch, if the opening of the container has looked at the
  /// queue, and nothing precedes that batch.
  func prepare() throws {
    guard let ahead = store.container.prefetched(EtcdQueueView.look(at: store.prefix)),
      let look = own.view.look(in: ahead)
    else { return }
    // Its own view does not get the look: what that sees first counts as older than the consumer.
    let view = EtcdQueueView(store, own: own.id)
    view.take(look)
    var waiting = WaitingEntries(clock: terms.queue.clock, view.arrivals)
    guard view.left(besides: []).isEmpty,
      let name = try waiting.next(listing: view.waiting), !isToShare(name)
    else { return }
    own.begin(with: (name, try commitRecord(name, .init(consumer: own.id), nil), nil))
  }

  /// Whether other workers, which may come later, get entries of a batch that this one could take.
  private func isToShare(_ name: EntryFile) -> Bool {
    terms.isWorker && name.count > 1 && name.count <= EtcdQueue.maximumCount && name.due == nil
  }

  /// Shares a waiting batch among the workers: in one step, each of its entries gets its own key.
  ///
  /// - Returns: False if it cannot be read, or is too large for that step.
  private mutating func share(_ name: EntryFile, _ store: EtcdQueue) throws -> Bool {
    let look = try store.look(at: name)
    guard let whole = look.whole, whole.owner == nil else {
      // Another worker has shared or taken it: its other entries precede all that the view shows.
      try own.view.refresh(until: store.container.callDeadline)
      return true
    }
    guard let batch = whole.batch else { return false }
    var change = EtcdTransaction(
      if: [own.fence, .absent(store.ownerKey(name))] + whole.item.unchanged,
      then: [.delete(.key(whole.item.key))])
    for (index, entry) in batch.entries.enumerated() {
      if entry.payload == nil {
        let id = QueueEntryID(batch: name, index: index)
        change.operations.append(try store.noting(entry.withdrawal, of: id))
        continue
      }
      // Nothing looks at the others of its batch there.
      var part = Batch(batch.entries.map { _ in .init(withdrawnAs: .cancelled) })
      part.entries[index] = entry
      change.operations.append(
        .put(key: store.entryKey(name.of(index)), value: try part.bytes()))
    }
    do throws(EtcdError) {
      // It is also refused if it was made and its answer was lost.
      _ = try store.container.repeating(change)
    } catch {
      guard error.code == .tooLarge else { throw error }
      return false
    }
    try own.view.refresh(until: store.container.callDeadline)
    return true
  }

  private func commitRecord(
    _ name: EntryFile, _ owner: BatchOwner, _ base: KeyValue?
  ) throws -> EtcdContainer.CommitRecord {
    .init(
      key: store.ownerKey(name), base: base, seen: base?.modified ?? own.view.revision,
      value: try owner.bytes(stamp: Nonce.next()))
  }

  private mutating func takeOver(
    _ name: EntryFile, from consumer: String, _ store: EtcdQueue
  ) throws -> TakeResult {
    let look = try store.look(at: name)
    guard let stored = look.whole, var owner = stored.owner else {
      own.view.noteEnd(of: name)
      return .again
    }
    guard owner.consumer == consumer else { return .again }
    owner.consumer = own.id
    return try take(name, owner, over: (consumer, stored.written), store)
  }

  private mutating func take(
    _ name: EntryFile, _ owner: BatchOwner, over last: (consumer: String, written: KeyValue?)?,
    _ store: EtcdQueue
  ) throws -> TakeResult {
    let (entry, key) = (store.entryKey(name), store.ownerKey(name))
    let consumer = store.consumerKey(own.id)
    var change = EtcdTransaction(
      if: [own.fence, .exists(entry)], then: [.read(.key(entry))],
      otherwise: [.key(consumer), .key(key), .key(entry)])
    if let last, last.consumer != own.id {
      change.conditions.append(.absent(store.consumerKey(last.consumer)))
    }
    let commitRecord = try commitRecord(name, owner, last?.written)
    let outcome = try store.container.commit(change, commitRecord)
    guard outcome.succeeded else {
      let found = outcome.results.map(\.items)
      guard found.first?.isEmpty == false else { throw store.queue.replaced() }
      // Another consumer has it, or it was cancelled.
      found[1].first.map { own.view.note($0) }
      if found[2].isEmpty { own.view.noteEnd(of: name) }
      return .again
    }
    return try accept(
      name, owner, commitRecord.item(at: outcome.revision), outcome.results.first?.items.first,
      isLeft: last != nil, store)
  }

  /// - Parameters:
  ///   - read: The batch, if it was read.
  ///   - isLeft: Whether another consumer had it.
  private mutating func accept(
    _ name: EntryFile, _ owner: BatchOwner, _ written: KeyValue, _ read: KeyValue?,
    isLeft: Bool = false, _ store: EtcdQueue
  ) throws -> TakeResult {
    let entry = store.entryKey(name)
    taken.insert(name)
    // Only a snapshot brings a taken batch back without an owner.
    let isNew = store.container.shared.taken.withLock { $0.insert(entry) }
    let isBack = !isLeft && !isNew
    let item = try read ?? store.item(entry)
    // No other process ends this consumer's batches.
    guard let item else { throw store.queue.replaced() }
    let record = EtcdTaken(own, name, owner: owner, written: written)
    do throws(Batch.Unreadable) {
      var batch = try Batch(bytes: item.value, count: name.total)
      for index in batch.entries.indices {
        batch.entries[index].expiry = batch.entries[index].expiry.map { expiry(of: name, $0) }
      }
      let back = isBack && name.count > 1 ? (0..<name.count).map { DeliveryLog.line($0) } : []
      let lines = owner.deliveries + back.joined()
      let log = DeliveryLog(
        lines.isEmpty ? nil : Array(lines.utf8),
        taken: (isLeft || isBack) && name.count == 1 ? name.indices.first : nil)
      return .batch(
        TakenBatch(
          name, batch, settled: owner.settled, log: log, by: own.directory, in: record, terms: terms
        ))
    } catch {
      let reason = "it could not be read: \(error.reason)"
      try record.putAside(
        item.value, as: .failed(reason: reason), until: store.container.callDeadline)
      return .again
    }
  }

  /// The expiry of an entry by this machine's clocks: an entry from another machine lives as long
  /// as its sender meant, from its arrival, however far apart the two clocks are. For an entry that
  /// arrived before this consumer only the times of day count; it lives no longer.
  private func expiry(of name: EntryFile, _ expiry: Expiry) -> Expiry {
    guard !expiry.isOfThisMachine, !expiry.isNever else { return expiry }
    let sent = Double(name.order) / 1e9
    let lifetime = Duration.milliseconds(
      Int64(min(max(expiry.date.timeIntervalSince1970 - sent, 0), 3e9) * 1_000))
    guard let age = own.view.age(of: name) else {
      return Expiry(after: min(expiry.remaining, lifetime))
    }
    return Expiry(after: lifetime - age)
  }
}
