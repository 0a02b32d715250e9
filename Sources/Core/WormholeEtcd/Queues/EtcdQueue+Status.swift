import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem

extension EtcdQueue {
  // MARK: Looking

  func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try look(at: id.batch).status(id.index)
  }

  func receipt(of id: QueueEntryID) throws -> QueueReceipt? {
    let call = call()
    let kept = try call.receipts(in: .key(receiptKey(id.batch))).first { $0.id == id }
    if let kept { return kept }
    let look = try call.look(at: id.batch)
    return look.entry(id.index).flatMap { QueueReceipt(id, $0, look.status(id.index)) }
  }

  func receipts(of sender: String) throws -> [QueueReceipt] {
    try call().receipts(in: range(.receipts, "\(sender)/"))
  }

  private func receipts(in range: KeyRange) throws -> [QueueReceipt] {
    let kept = try container.read(range).items.compactMap { receipt($0) }
      .sorted { $0.batch < $1.batch }
    let looks = try looks(at: kept.map(\.batch))
    return zip(kept, looks).flatMap { kept, look in
      kept.content.kept.compactMap { index in
        QueueReceipt(
          .init(batch: kept.batch, index: index), kept.content.entries[index], look.status(index))
      }
    }
  }

  /// - Returns: nil if it cannot be read.
  private func receipt(_ item: KeyValue) -> (batch: EntryFile, content: Batch)? {
    let name = item.key.reversed().prefix { $0 != UInt8(ascii: "/") }.reversed()
    guard let batch = EntryFile(bytes: Array(name)) else { return nil }
    return Batch(found: item.value, count: batch.total).map { (batch, $0) }
  }

  func unfinished(of sender: String?, limit: Int) throws -> [QueueReceipt] {
    let call = call()
    if let sender {
      return try call.unfinished(call.waiting().filter { $0.sender == sender })
    }
    let owners = try call.container.read(range(.owners), keysOnly: true).items
    let taken = Set(owners.compactMap { batch($0.key) })
    let waiting = try call.waiting().filter { !taken.contains($0) }
    var found = try call.unfinished(Array(taken))
    var rest = waiting[...]
    var count = 0
    while count < limit, !rest.isEmpty {
      let next = try call.unfinished(Array(rest.prefix(Self.looksAtOnce)))
      rest = rest.dropFirst(Self.looksAtOnce)
      count += next.count
      found += next
    }
    return found
  }

  func abandoned() throws -> Set<EntryFile> {
    let (owners, consumers) = (range(.owners), range(.consumers))
    let found = try client.read(
      [.init(owners), .init(consumers, keysOnly: true)], until: call().container.callDeadline
    ).items
    let living = Set(found[1].map(\.key))
    return Set(
      found[0].filter { !living.contains(consumerKey(BatchOwner($0.value).consumer)) }
        .compactMap { batch($0.key) })
  }

  /// Returns the unsettled batches, in the order of delivery.
  private func waiting() throws -> [EntryFile] {
    try container.read(range(.entries), keysOnly: true).items
      .compactMap { batch($0.key) }.sorted { $0.precedes($1) }
  }

  private func unfinished(_ batches: [EntryFile]) throws -> [QueueReceipt] {
    zip(batches, try looks(at: batches)).flatMap { batch, look in
      batch.indices.compactMap { index in
        let status = look.status(index)
        guard !status.isEnd, let entry = look.entry(index) else { return nil }
        return QueueReceipt(.init(batch: batch, index: index), entry, status)
      }
    }
  }

  func outcomes(of sender: String) throws -> [QueueOutcome] {
    try container.read(range(.outcomes, "\(sender)/")).items.compactMap { item in
      guard let id = id(item.key) else { return nil }
      let status = OutcomeFile.status(item.value)
      return status == .processed ? nil : QueueOutcome(id: id, status: status)
    }.sorted { $0.id.isBefore($1.id) }
  }

  func hasEntries() throws -> Bool {
    try !container.glance(at: range(.entries)).items.isEmpty
  }

  // MARK: Forgetting

  func forget(_ id: QueueEntryID) throws {
    let call = call()
    let (receipt, outcome) = (receiptKey(id.batch), outcomeKey(id))
    try call.changing { _ in
      let found = try call.read([.key(receipt), .key(outcome)]).items
      let item = found[0].first
      var items: [(key: [UInt8], item: KeyValue?)] = [(receipt, item)]
      var operations: [EtcdTransaction.Operation] = []
      if let item, let change = try self.forgetting(id, item) { operations.append(change) }
      if let note = found[1].first {
        items.append((outcome, note))
        operations.append(.delete(.key(outcome)))
      }
      guard !operations.isEmpty else { return .done(()) }
      return .change(.init(if: .unchanged(items), then: operations), ())
    }
  }

  private func forgetting(
    _ id: QueueEntryID, _ item: KeyValue
  ) throws -> EtcdTransaction.Operation? {
    guard var (_, content) = receipt(item) else { return .delete(.key(item.key)) }
    guard content.kept.contains(id.index) else { return nil }
    content.entries[id.index].keepsReceipt = false
    return content.kept.isEmpty
      ? .delete(.key(item.key)) : .put(key: item.key, value: try content.bytes())
  }

  // MARK: Withdrawing

  func cancellation(
    of id: QueueEntryID?, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<Int> {
    StepwiseWait {
      guard let id else { return try .done(cancelAll(until: deadline)) }
      return try .done(cancel(id, until: deadline) ? 1 : 0)
    }
  }

  private func cancel(
    _ id: QueueEntryID, until deadline: ContinuousClock.Instant?
  ) throws -> Bool {
    let call = until(CallLimit.callDeadline(deadline ?? container.callDeadline))
    return try reporting("cancel an entry of \"\(queue.name)\"", path: queue.path) {
      try call.changing { _ in
        let look = try call.look(at: id.batch)
        guard look.status(id.index) == .stored, let stored = look.stored(id.index),
          let change = try withdrawal([id.index], of: stored, as: .cancelled)
        else { return .done(look.status(id.index) == .cancelled) }
        return .change(change, true)
      }
    }
  }

  private func cancelAll(until deadline: ContinuousClock.Instant?) throws -> Int {
    var limited: EtcdQueue { until(CallLimit.callDeadline(deadline ?? container.callDeadline)) }
    return try limited.waiting().reduce(0) { try $0 + limited.cancelAll(of: $1) }
  }

  func cancelAll(of name: EntryFile) throws -> Int {
    // The entries that an earlier change of unknown outcome withdraws.
    var doubtful: [Int] = []
    // Those that workers have shared in the meantime.
    var parts: [EntryFile] = []
    let count = try changing { _ in
      let look = try look(at: name)
      parts = look.parts.values.map(\.name)
      let waiting = name.indices.filter { look.status($0) == .stored }
      guard !waiting.isEmpty, let stored = look.whole,
        let change = try withdrawal(Set(waiting), of: stored, as: .cancelled)
      else { return .done(doubtful.filter { look.status($0) == .cancelled }.count) }
      doubtful = waiting
      return .change(change, waiting.count)
    }
    return try parts.reduce(count) { try $0 + cancelAll(of: $1) }
  }

  /// Returns the change that withdraws entries of a waiting batch; nil if it cannot be read.
  func withdrawal(
    _ indices: Set<Int>, of stored: EtcdBatchState.Stored, as status: QueueEntryStatus
  ) throws -> EtcdTransaction? {
    guard var batch = stored.batch else { return nil }
    let (name, item) = (stored.name, stored.item)
    for index in indices where batch.entries[index].payload != nil {
      batch.entries[index] = .init(withdrawnAs: status)
    }
    var change = EtcdTransaction(
      if: item.unchanged + [.absent(ownerKey(name))], then: [])
    // The consumer handles those beyond a transaction's limit, which it finds withdrawn.
    if batch.isWithdrawn, name.count <= Self.maximumCount {
      change.operations.append(.delete(.key(item.key)))
      for index in name.indices {
        change.operations.append(
          try noting(batch.entries[index].withdrawal, of: .init(batch: name, index: index)))
      }
    } else {
      change.operations.append(.put(key: item.key, value: try batch.bytes()))
    }
    return change
  }

  /// Returns the step that records how an entry ended.
  func noting(
    _ status: QueueEntryStatus, of id: QueueEntryID
  ) throws -> EtcdTransaction.Operation {
    .put(key: outcomeKey(id), value: try OutcomeFile.bytes(status, at: queue.clock()))
  }
}
