import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem

extension EtcdQueue: QueueStore {
  func outlet(for sender: String, _ limits: QueueLimits) -> any BatchWriter {
    EtcdBatchWriter(self, sender, limits: limits)
  }

  /// Nothing is left to do: it was part of the store.
  func supersede(_ key: String, before id: QueueEntryID) {}

  func joining(
    _ terms: DeliveryTerms, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<QueueMembership> {
    let place = EtcdConsumerMembership(self, isAlone: !terms.isWorker)
    let consumer = EtcdConsumer(place, terms)
    let presence = EtcdPresence(container, name: queue.name, kind: queue.role.kind)
    let entry = queue.role.entry(isExclusive: !terms.isWorker) {
      EtcdRoleAcquisition(
        presence, $0, overtaking: .suspended, until: deadline ?? .now + CallLimit.standardWait,
        with: place)
    }
    return StepwiseWait {
      try consumer.prepare()
      return try entry.step().then { registration in
        do {
          try place.begin(until: deadline)
          return .done((consumer, place, registration))
        } catch {
          place.end(registration, .replaced)
          throw error
        }
      }
    }
  }

  // MARK: Failures

  func failures() throws -> [QueueFailure] {
    try container.read(range(.failures)).items.compactMap { failure($0) }
      .sorted { $0.id.isBefore($1.id) }
  }

  private func failure(_ item: KeyValue) -> QueueFailure? {
    guard let id = id(item.key),
      let payload = Batch(found: item.value, count: 1)?.entries[0].payload
    else { return nil }
    let value = PropertyListValue(found: item.value)
    return QueueFailure(
      id: id, payload: payload, reason: value?["reason"]?.stringValue ?? "no reason was given",
      date: value?["date"]?.dateValue ?? .distantPast)
  }

  /// Returns the step that keeps an entry for inspection.
  func keeping(
    _ payload: PropertyListValue, _ id: QueueEntryID, reason: String
  ) throws -> EtcdTransaction.Operation {
    let list: PropertyListValue = .array([Batch.Entry(payload: payload).value])
    let date = Date(timeIntervalSince1970: Double(queue.clock()) / 1e9)
    let value: PropertyListValue = [
      "entries": list, "reason": .string(reason), "date": .date(date),
    ]
    return .put(key: failureKey(id), value: try value.binaryBytes())
  }

  func retry(_ id: QueueEntryID) throws -> QueueEntryID? {
    guard let item = try item(failureKey(id)), let failure = failure(item) else { return nil }
    let attachment = try failure.payload.attachmentID.map { try givingBack(attachment: $0) }
    return try EtcdBatchWriter(self, id.batch.sender, limits: .standard)
      .adopt(attachment, Batch.Entry(payload: failure.payload), id: id, kept: item)
  }

  func forgetFailure(_ id: QueueEntryID) throws -> Bool {
    let (key, call) = (failureKey(id), call())
    var file: KeyValue?
    let isForgotten = try call.changing { inDoubt in
      guard let item = try call.item(key) else { return .done(inDoubt) }
      file = try failure(item)?.payload.attachmentID.flatMap { try takenAttachment($0) }
      return .change(
        .init(if: item.unchanged, then: [.delete(.key(key))] + removal(of: file)), true)
    }
    if let file { discard(file) }
    return isForgotten
  }

  // MARK: Care

  func expire() throws -> [String] { try expire(of: nil, limit: .max) }

  /// How long records without a request for them are kept, in nanoseconds: a day.
  private static let keeping: UInt64 = 86_400 * 1_000_000_000

  /// Removes receipts with a term of entries processed a day ago, and notes of that age for entries
  /// that were sent without a receipt.
  ///
  /// - Parameters:
  ///   - sender: the sender; nil for all senders.
  ///   - limit: the largest number to remove.
  /// - Returns: the removed keys, for people.
  func expire(of sender: String?, limit: Int) throws -> [String] {
    let call = call()
    let now = queue.clock()
    let part = sender.map { $0 + "/" } ?? ""
    let found = try client.read(
      [.init(range(.outcomes, part)), .init(range(.receipts, part))],
      until: call.container.callDeadline
    ).items
    let notes = found[0].filter { note in
      guard let ended = OutcomeFile.ended(note.value) else { return false }
      return ended < now && now - ended >= Self.keeping
    }
    let kept = Dictionary(found[1].map { ($0.key, $0) }) { $1 }
    var removed: [String] = []
    for (batch, notes) in Dictionary(grouping: notes, by: { id($0.key)?.batch }) {
      // With the receipt, and two conditions of a content.
      guard let batch, removed.count < limit, notes.count + 3 <= EtcdContainer.maximumOperations
      else { continue }
      var items = notes
      if let receipt = kept[receiptKey(batch)] {
        // A damaged receipt stays for `doctor`, because nothing else says what it was.
        guard let content = Batch(found: receipt.value, count: batch.total) else { continue }
        // If other entries of the batch have not ended, or were not processed, nothing is removed.
        let over = Set(
          notes.filter { OutcomeFile.status($0.value) == .processed }.compactMap {
            id($0.key)?.index
          })
        guard
          content.kept.allSatisfy({
            over.contains($0) && content.entries[$0].receiptTerm == .dayAfterProcessing
          })
        else { continue }
        items.append(receipt)
      }
      let outcome = try call.container.repeating(
        .init(
          if: .unchanged(items.map { ($0.key, $0) }),
          then: items.map { .delete(.key($0.key)) }))
      // A note of a processed entry is a part of its receipt.
      let records = items.filter {
        OutcomeFile.status($0.value) != .processed || $0.key == receiptKey(batch)
      }
      if outcome.succeeded { removed += records.map { container.location(of: $0.key) } }
    }
    return removed
  }

  func watchFirstUse(_ signal: @escaping @Sendable () -> Void) throws -> (any Cancelling)? {
    let found = try container.commit(Self.firstUse(everything))
    guard found.results == [.read([])] else { return nil }
    return client.watch(everything, after: found.moment) { _ in signal() }
  }

  static func firstUse(_ everything: KeyRange) -> EtcdTransaction {
    EtcdTransaction(if: [], then: [.read(everything, keysOnly: true, limit: 1)])
  }

  /// Each end of an entry changes or deletes `e/<batch>` or `d/<batch>`.
  func watchEnds(_ ends: QueueEnds) throws -> any Cancelling {
    // A waiter that looks learns why a look fails.
    try KeyWatch(container, range(from: .owners, through: .entries)) { [weak ends] events in
      for batch in events.compactMap({ batch($0.keyValue.key)?.whole }) { ends?.raise(batch) }
    } mayHaveMissed: { [weak ends] in
      ends?.raiseAll()
    }
  }

  /// Removes the marks of entries that are gone, and files that no entry names.
  func sweep() throws {
    try sweepAttachments()
    let container = container.call()
    for mark in try container.read(range(.marks)).items {
      let id = OutcomeFile.id(String(decoding: mark.value, as: UTF8.self))
      var conditions = mark.unchanged
      conditions += id?.files.map { .absent(entryKey($0)) } ?? []
      _ = try container.repeating(.init(if: conditions, then: [.delete(.key(mark.key))]))
    }
  }
}
