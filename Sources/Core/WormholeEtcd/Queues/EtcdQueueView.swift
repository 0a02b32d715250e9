import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// One consumer's view of a queue: the names of waiting and taken batches, and the consumers. Read
/// once, then followed by a watch; the transaction that follows repeats each decision made by it.
///
/// The contents of entries are not kept. In a history it never goes back: older news is dropped.
final class EtcdQueueView: KeyFollowing {
  /// The part of an owner record that others have to know.
  struct Owner {
    let consumer: String
    let modified: Int64
  }

  private struct State {
    var moment = EtcdMoment.none
    /// With the revision of each one's creation.
    var entries: [EntryFile: Int64] = [:]
    /// The arrival times of batches that this consumer has seen arrive (`bootTimeNanoseconds`).
    var arrived: [EntryFile: UInt64] = [:]
    var owners: [EntryFile: Owner] = [:]
    var consumers: Set<String> = []
  }

  private let store: EtcdQueue
  private let own: String
  private let state = Mutex(State())
  private let signal = Mutex<(@Sendable () -> Void)?>(nil)
  let arrivals = Arrivals()
  private let follower: KeyFollower

  /// - Parameter own: the name of this consumer.
  init(_ store: EtcdQueue, own: String) {
    self.store = store
    self.own = own
    follower = KeyFollower(store.container, store.range(from: .consumers, through: .entries))
  }

  /// Keys that were read: those of consumers and taken batches, and of waiting ones.
  typealias ReadKeys = (moment: EtcdMoment, items: [[KeyValue]])

  private static func parts(of queue: [UInt8]) -> [EtcdClient.Part] {
    let end = KeyRange.end(ofPrefix: queue + QueueKeyPart.owners.bytes())
    return [
      .init(.range(from: queue + QueueKeyPart.consumers.bytes(), to: end)),
      .init(.prefix(queue + QueueKeyPart.entries.bytes()), keysOnly: true),
    ]
  }

  /// - Parameter queue: The beginning of the queue's keys.
  static func look(at queue: [UInt8]) -> EtcdTransaction {
    EtcdTransaction(if: [], then: parts(of: queue).map { $0.page() })
  }

  /// The look in the results of a transaction; nil if it was too small for the queue.
  func look(in outcome: EtcdTransaction.Outcome) -> ReadKeys? {
    let items = outcome.results.suffix(2).compactMap { result -> [KeyValue]? in
      if case .read(let items, isIncomplete: false) = result { items } else { nil }
    }
    return items.count == 2 ? (outcome.moment, items) : nil
  }

  /// Begins to follow, after a look, or after reading.
  func begin(with keys: ReadKeys?, until deadline: ContinuousClock.Instant) throws(EtcdError) {
    guard let keys else { return try follower.begin(for: self, until: deadline) }
    take(keys)
    follower.begin(for: self, after: keys.moment)
  }

  // The call that takes the next entry reports why a look fails.
  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    try refresh(until: deadline)
    return state.withLock(\.moment)
  }

  func looked(isNewWatch: Bool) { raise() }

  /// - Parameter signal: called when there may be a batch to take; on the thread of the watches.
  func onNews(_ signal: @escaping @Sendable () -> Void) { self.signal.withLock { $0 = signal } }

  func cancel() {
    follower.cancel()
    signal.withLock { $0 = nil }
  }

  private func raise() { signal.withLock { $0 }?() }

  // MARK: Looking

  var revision: Int64 { state.withLock(\.moment.revision) }

  func isThere(_ consumer: String) -> Bool {
    state.withLock { $0.consumers.contains(consumer) }
  }

  /// How long ago a batch arrived, if this consumer has seen it arrive.
  func age(of batch: EntryFile) -> Duration? {
    state.withLock { $0.arrived[batch] }.map {
      .nanoseconds(Int64(clamping: bootTimeNanoseconds() - $0))
    }
  }

  func hasEntry(_ batch: EntryFile) -> Bool { state.withLock { $0.entries[batch] != nil } }

  /// The batches of consumers that are gone, in the order of delivery; and batches that this one
  /// has without knowing it, because the answer to its taking came too late.
  ///
  /// - Parameter taken: the batches that it knows.
  func left(besides taken: Set<EntryFile>) -> [(batch: EntryFile, owner: Owner)] {
    state.withLock { state in
      state.owners.filter { batch, owner in
        owner.consumer == own
          ? !taken.contains(batch) : !state.consumers.contains(owner.consumer)
      }
    }.map { ($0.key, $0.value) }.sorted { $0.batch.precedes($1.batch) }
  }

  /// The waiting batches in the order of delivery, which is that of arrival. A delayed batch has
  /// the place of its due time. Workers share the first batch, so its entries precede all others.
  func waiting() -> [EntryFile] {
    let found = state.withLock { state in
      state.entries.filter { state.owners[$0.key] == nil }
    }
    var order = found.filter { $0.key.due == nil }.sorted { first, second in
      let isShared = first.key.part != nil
      guard isShared == (second.key.part != nil) else { return isShared }
      let (new, old) = (first.value, second.value)
      // Batches of a copied container may have arrived in one step, and the entries of one do.
      return new != old ? new < old : first.key < second.key
    }.map(\.key)
    for batch in found.keys.filter({ $0.due != nil }).sorted(by: { $0.precedes($1) }) {
      let place = order.firstIndex { batch.precedes($0) } ?? order.endIndex
      order.insert(batch, at: place)
    }
    return order
  }

  // MARK: Following

  func refresh(until deadline: ContinuousClock.Instant) throws(EtcdError) {
    take(try store.client.read(Self.parts(of: store.prefix), until: deadline))
  }

  func take(_ keys: ReadKeys) {
    let (moment, found) = keys
    let isNew = state.withLock { state in
      guard moment >= state.moment else { return false }
      let before = state.entries
      let isFirst = state.moment.revision == 0
      let isSame = moment.history == state.moment.history
      state.moment = moment
      state.entries = [:]
      // A transaction may have shown them after this read.
      let newer = state.owners.filter { isSame && $0.value.modified > moment.revision }
      state.owners = [:]
      state.consumers = []
      for item in found.joined() { put(item, in: &state) }
      state.owners.merge(newer) { $1 }
      state.arrived = state.arrived.filter { state.entries[$0.key] != nil }
      let new = state.entries.keys.filter { before[$0] == nil }
      if !isFirst { for batch in new { state.arrived[batch] = bootTimeNanoseconds() } }
      return !new.isEmpty
    }
    if isNew { arrivals.noteEverything() }
  }

  /// Records what a transaction has shown before the watch reports it.
  func note(_ item: KeyValue) { state.withLock { put(item, in: &$0) } }

  func noteEnd(of batch: EntryFile) {
    state.withLock { state in
      state.entries[batch] = nil
      state.owners[batch] = nil
    }
  }

  private func put(_ item: KeyValue, in state: inout State) {
    guard let (part, name) = store.part(item.key) else { return }
    if part == .consumers { state.consumers.insert(String(decoding: name, as: UTF8.self)) }
    guard let batch = EntryFile(bytes: Array(name)) else { return }
    if part == .entries { state.entries[batch] = item.created }
    guard part == .owners, state.owners[batch].map({ $0.modified < item.modified }) ?? true else {
      return
    }
    state.owners[batch] = Owner(consumer: BatchOwner(item.value).consumer, modified: item.modified)
  }

  private func delete(_ key: [UInt8], in state: inout State) {
    guard let (part, name) = store.part(key) else { return }
    if part == .consumers { state.consumers.remove(String(decoding: name, as: UTF8.self)) }
    guard let batch = EntryFile(bytes: Array(name)) else { return }
    if part == .owners { state.owners[batch] = nil }
    if part == .entries { (state.entries[batch], state.arrived[batch]) = (nil, nil) }
  }

  // On the thread of the watches.
  func hear(_ events: [EtcdEvent], of history: Int) {
    var isNews = false
    state.withLock { state in
      guard history == state.moment.history else { return }
      for event in events where event.keyValue.modified > state.moment.revision {
        if isOfInterest(event, &state) { isNews = true }
        if event.kind == .put {
          put(event.keyValue, in: &state)
        } else {
          delete(event.keyValue.key, in: &state)
        }
      }
      state.moment = max(
        state.moment,
        EtcdMoment(history: history, revision: events.last?.keyValue.modified ?? 0))
    }
    if isNews { raise() }
  }

  /// Whether there may be a batch to take after an event: one has arrived, or a consumer is gone,
  /// perhaps this one.
  private func isOfInterest(_ event: EtcdEvent, _ state: inout State) -> Bool {
    guard let (part, name) = store.part(event.keyValue.key) else { return false }
    switch (part, event.kind) {
    case (.entries, .put):
      guard let batch = EntryFile(bytes: Array(name)), state.entries[batch] == nil else {
        return false
      }
      arrivals.note(batch)
      state.arrived[batch] = bootTimeNanoseconds()
      return true
    case (.consumers, .delete): return true
    default: return false
    }
  }
}
