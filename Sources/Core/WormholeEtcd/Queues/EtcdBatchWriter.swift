import Synchronization
import Wormhole
import WormholeInspection

/// The writer of a sender's batches on etcd; see `EtcdQueue`.
final class EtcdBatchWriter: BatchWriter {
  private let store: EtcdQueue
  private let sender: String
  private let state: Mutex<State>

  private struct State {
    /// The sender's last batch; nil before the first look, and after an error.
    var last: Last?
    var admission: Admission
    var expiry = RecordExpiry()
    /// When to look again whether a batch from a time ahead is left.
    var nextLook = ContinuousClock.now
    /// Whether the sender may have records that have expired.
    var mayExpire = true
  }

  /// `s/<sender>`.
  private struct Last {
    let order: UInt64
    /// Nil if it does not exist.
    let item: KeyValue?
    /// The revision at which that was so.
    let seen: Int64

    static func found(_ item: KeyValue?, seen: Int64) -> Last {
      let words = String(decoding: item?.value ?? [], as: UTF8.self).split(separator: " ")
      let order = words.last.flatMap { UInt64($0, radix: 16) }
      return Last(order: order ?? 0, item: item, seen: seen)
    }
  }

  /// The largest numbers that may wait, whatever limits a sender has: etcd keeps everything in
  /// memory and in one database, for all of its users.
  static let limits = QueueLimits(entries: 100_000, bytes: 256 << 20)

  init(_ store: EtcdQueue, _ sender: String, limits: QueueLimits) {
    self.store = store
    self.sender = sender
    state = Mutex(
      State(
        admission: Admission(
          entries: min(limits.entries, Self.limits.entries),
          bytes: min(limits.bytes, Self.limits.bytes))))
  }

  private var queue: PlainQueue { store.queue }

  // An entry with a key takes steps to supersede others, so it is alone.
  func parts(of submissions: [Submission]) -> [[Submission]] {
    var parts: [[Submission]] = []
    for submission in submissions {
      let isAlone = submission.entry.key != nil || parts.last?.last?.entry.key != nil
      if isAlone || parts.last.map({ $0.count == EtcdQueue.maximumCount }) ?? true {
        parts.append([])
      }
      parts[parts.count - 1].append(submission)
    }
    return parts
  }

  func refusal(of count: Int, _ size: Int) throws -> Admission? {
    if state.withLock({ $0.admission.allows(count, size) }) { return nil }
    return try reporting("look at what waits in \"\(queue.name)\"", path: queue.path) {
      let items =
        try look() ?? store.container.read(store.range(.entries), keysOnly: true).items
      let waiting = items.compactMap { store.batch($0.key) }
      return state.withLock {
        $0.admission.note(waiting: waiting, for: count, size) ? nil : $0.admission
      }
    }
  }

  /// The look at a sender's last batch, at the waiting batches, and at the sender's records.
  ///
  /// - Parameter queue: The beginning of the queue's keys.
  static func look(of sender: String, _ queue: [UInt8]) -> EtcdTransaction {
    func range(_ part: QueueKeyPart, _ start: String) -> KeyRange {
      .prefix(queue + part.bytes(start))
    }
    return EtcdTransaction(
      if: [],
      then: [
        .read(.key(queue + QueueKeyPart.senders.bytes(sender))),
        .read(range(.entries, ""), keysOnly: true, limit: EtcdClient.pageSize),
        .count(range(.outcomes, "\(sender)/")), .count(range(.receipts, "\(sender)/")),
      ])
  }

  /// - Returns: The waiting batches; nil if there are more than a page.
  private func look() throws(EtcdError) -> [KeyValue]? {
    let found = try store.container.commit(Self.look(of: sender, store.prefix))
    state.withLock { state in
      state.last = state.last ?? .found(found.results[0].items.first, seen: found.revision)
      state.mayExpire = found.results.dropFirst(2).contains { $0 != .count(0) }
    }
    guard case .read(let items, isIncomplete: false) = found.results[1] else { return nil }
    return items
  }

  func store(
    _ bytes: [UInt8], _ entries: [Batch.Entry], position: Submission.Schedule, isDurable: Bool,
    under role: RoleProof?
  ) throws -> EntryFile {
    let name = try store(bytes, entries, position: position, alongside: nil, under: role)
    expire()
    return name
  }

  /// - Parameter other: a change to be made in the same step; then this is tried once.
  private func store(
    _ bytes: [UInt8], _ entries: [Batch.Entry], position: Submission.Schedule,
    alongside other: EtcdTransaction?, under role: RoleProof? = nil
  ) throws -> EntryFile {
    let keepsReceipt = entries.contains(where: \.keepsReceipt)
    let size = keepsReceipt ? 2 * bytes.count : bytes.count
    guard size <= EtcdContainer.maximumBytes else {
      throw EtcdError(
        .tooLarge,
        "an entry of \(bytes.count) bytes\(keepsReceipt ? ", stored with a receipt," : "") is too large"
      )
    }
    let store = store.call()
    repeat {
      let last = try state.withLock(\.last) ?? readLast(store)
      // Unless this succeeds, the state is read again.
      state.withLock { $0.last = nil }
      let order = try order(after: last, store)
      let name = EntryFile(
        order: order, sender: sender, count: entries.count, bytes: bytes.count,
        due: position.delay.map { order + min($0, .max - order) })
      var change = EtcdTransaction(
        if: [.absent(store.entryKey(name))] + (other?.conditions ?? []) + (role?.conditions ?? []),
        then: [.put(key: store.entryKey(name), value: bytes)] + (other?.operations ?? []))
      if keepsReceipt {
        change.operations.append(.put(key: store.receiptKey(name), value: bytes))
      }
      for (index, entry) in entries.enumerated() {
        guard let key = entry.key else { continue }
        try supersede(key, by: .init(batch: name, index: index), in: &change, store)
      }
      let commitRecord = EtcdContainer.CommitRecord(
        key: store.key(.senders, sender), base: last.item, seen: last.seen,
        value: Array("\(Nonce.next()) \(String(order, radix: 16))".utf8))
      let outcome = try store.container.commit(change, commitRecord)
      guard outcome.succeeded else {
        // Another process sends under this name, or a superseded entry was just taken; or another
        // condition no longer holds.
        try role?.check(on: store.container)
        continue
      }
      state.withLock { state in
        state.last = Last(
          order: order, item: commitRecord.item(at: outcome.revision), seen: outcome.revision)
        state.admission.noteStored(name)
      }
      return name
    } while .now < store.container.callDeadline && other == nil
    throw EtcdError(.unreachable, "others send under the same name all the time")
  }

  /// A sender whose clock was once ahead begins again with its present time, as soon as none of its
  /// batches from then is left: the time of sending is in the order.
  private func order(after last: Last, _ store: EtcdQueue) throws(EtcdError) -> UInt64 {
    let now = queue.clock()
    let usual = EntryFile.order(after: last.order, now: now)
    guard usual > now + Self.clockDifference, state.withLock({ $0.nextLook <= .now }) else {
      return usual
    }
    state.withLock { $0.nextLook = .now + .seconds(1) }
    let left = try store.container.read(store.range(.entries), keysOnly: true).items
      .compactMap { store.batch($0.key) }.filter { $0.sender == sender }
    return EntryFile.order(after: left.map(\.order).max() ?? 0, now: now)
  }

  /// A minute: a clock that is corrected little by little is never that much ahead.
  private static let clockDifference: UInt64 = 60_000_000_000

  private func readLast(_ store: EtcdQueue) throws(EtcdError) -> Last {
    let (items, revision) = try store.read([.key(store.key(.senders, sender))])
    return .found(items[0].first, seen: revision)
  }

  /// Adds the steps that supersede the sender's newest entry with a key, unless a consumer has it.
  private func supersede(
    _ key: String, by id: QueueEntryID, in change: inout EtcdTransaction, _ store: EtcdQueue
  ) throws {
    let mark = store.markKey(sender, key)
    let old = try store.item(mark)
    change.conditions += .unchanged([(mark, old)])
    change.operations.append(
      .put(key: mark, value: Array("\(id.batch.text).\(id.index)".utf8)))
    guard let old, let oldID = OutcomeFile.id(String(decoding: old.value, as: UTF8.self)),
      oldID.batch.sender == sender
    else { return }
    let look = try store.look(at: oldID.batch)
    guard look.status(oldID.index) == .stored, let stored = look.stored(oldID.index),
      let withdrawal = try store.withdrawal([oldID.index], of: stored, as: .superseded)
    else { return }
    change.conditions += withdrawal.conditions
    change.operations += withdrawal.operations
  }

  /// Sends a kept failed entry again, and removes the kept one.
  ///
  /// - Parameter file: the steps for the file that accompanies it.
  /// - Returns: nil if it no longer exists.
  func adopt(
    _ file: EtcdTransaction?, _ entry: Batch.Entry, id: QueueEntryID, kept: KeyValue
  ) throws -> QueueEntryID? {
    let (bytes, deadline) = (try Batch([entry]).bytes(), store.container.callDeadline)
    while true {
      do {
        let name = try store(
          bytes, [entry], position: .init(),
          alongside: .init(
            if: kept.unchanged + (file?.conditions ?? []),
            then: [.delete(.key(kept.key))] + (file?.operations ?? [])))
        return QueueEntryID(batch: name, index: 0)
      } catch let error as EtcdError where error.code == .unreachable {
        guard try store.item(kept.key) == kept else { return nil }
        if .now >= deadline { throw error }
      }
    }
  }

  private func expire() {
    let mayExpire = state.withLock { $0.expiry.begin() && exchange(&$0.mayExpire, with: true) }
    // The entry is stored. The next sender or a sweep tries this again.
    if mayExpire { _ = try? store.expire(of: sender, limit: RecordExpiry.limit) }
  }
}
