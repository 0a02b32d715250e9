public import PropertyLists
import SystemCalls

/// An entry that its sender wanted to find again: what it was, and what has become of it.
///
/// The batch of such an entry has a second name, `sent/<batch>`, from the moment it is stored until
/// the sender has forgotten all entries in it that keep a receipt. So a receipt costs a name, and
/// no copy. Who is stopped or killed between the two names has stored an entry and never told so:
/// there is an entry without a receipt, never a receipt for what was not stored. Consumers never
/// touch `sent/`; what is cancelled is exchanged in `pending/`, so the payload stays here.
public struct QueueReceipt: Sendable, Hashable {
  /// By what to ask for it, and to forget it.
  public let id: QueueEntryID
  /// What was sent.
  public let payload: PropertyListValue
  /// The key that it was sent with.
  public let key: String?
  /// What has become of it.
  public let status: QueueEntryStatus
}

extension Queue.Sender {
  /// All entries that were sent under this name with a receipt and are not forgotten, in the order in
  /// which they were sent; of all processes and objects that use the name.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses. A receipt that cannot be read any
  ///   more, after a loss of power for example, is left out.
  /// - Complexity: one listing; for each file the same as `status(of:)`, and reading it.
  public func receipts() throws -> [QueueReceipt] {
    try reporting("look for receipts of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open() else { return [] }
      let batches = try queue.place.batches(QueueDirectory.sent, at: place) ?? []
      var receipts: [QueueReceipt] = []
      for batch in batches.filter({ $0.sender == component }).sorted() {
        receipts += try queue.place.receipts(batch, at: place)
      }
      return receipts
    }
  }

  /// Forgets an entry, once the sender has drawn its conclusions: its receipt, and the note of how it
  /// ended, if it was not processed. It then counts as processed.
  ///
  /// What has not ended yet is delivered all the same, and if it fails then, a note of that stays.
  /// Without this, receipts and notes stay for ever.
  ///
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: two unlinks; where several entries are in one file, it is read, and the last
  ///   one removes it.
  public func forget(_ id: QueueEntryID) throws {
    try reporting("forget an entry of \"\(queue.name)\"", path: queue.path) {
      guard let place = try queue.place.directory.open() else { return }
      // The note last: a receipt without its note would say that it was processed.
      try queue.place.forgetReceipt(id, at: place)
      try queue.place.discard(QueueDirectory.outcomePath(id), at: place)
    }
  }
}

extension QueueDirectory {
  fileprivate func receipts(
    _ batch: BatchName, at place: borrowing FileDescriptor
  ) throws -> [QueueReceipt] {
    guard let content = try sent(batch, at: place) else { return [] }
    let forgotten = try numbers(Self.sentPath(batch) + Self.forgottenSuffix, at: place)
    let kept = Set(content.kept).subtracting(forgotten)
    guard !kept.isEmpty else { return [] }
    let statuses = try statuses(of: batch, kept, at: place)
    return kept.sorted().compactMap { index in
      guard let payload = content.entries[index].payload, let status = statuses[index] else {
        return nil
      }
      let id = QueueEntryID(batch: batch, index: index)
      return QueueReceipt(
        id: id, payload: payload, key: content.entries[index].key, status: status)
    }
  }

  /// - Returns: nil where there is nothing, or nothing that can be read.
  private func sent(_ batch: BatchName, at place: borrowing FileDescriptor) throws -> Batch? {
    do {
      guard let bytes = try read(Self.sentPath(batch), at: place) else { return nil }
      return try Batch(bytes: bytes, count: batch.count)
    } catch is Batch.Unreadable {
      return nil
    }
  }

  fileprivate func forgetReceipt(
    _ id: QueueEntryID, at place: borrowing FileDescriptor
  ) throws {
    let path = Self.sentPath(id.batch)
    if id.batch.count > 1, let content = try sent(id.batch, at: place) {
      guard content.kept.contains(id.index) else { return }
      let forgotten = path + Self.forgottenSuffix
      try append(id.index, to: forgotten, at: place)
      // Each that forgets looks after its own line is there: so the last one sees all.
      guard try numbers(forgotten, at: place).isSuperset(of: content.kept) else { return }
    }
    // The batch first: what is forgotten of it says nothing without it.
    try discard(path, at: place)
    guard id.batch.count > 1 else { return }
    try discard(path + Self.forgottenSuffix, at: place)
  }
}
