import WormholeSystem

/// Receipts.
///
/// The batch of such an entry has a second name, `sent/<batch>`, from the moment it is stored until
/// the sender has cleared all entries in it that keep a receipt. So a receipt costs a name, and no
/// copy. A sender that is stopped or killed between the two names has stored an entry without
/// reporting it: an entry without a receipt is possible, a receipt for an entry that was not stored
/// is not. Consumers never touch `sent/`; a cancelled entry is exchanged in `pending/`, so the
/// payload stays here.
extension QueueDirectory {
  /// Returns the entries of a batch that keep a receipt, and are not cleared.
  package func receipts(_ batch: EntryFile) throws -> [QueueReceipt] {
    guard let content = try self.batch(batch, in: Self.sent) else { return [] }
    let forgotten = try numbers(Self.sentPath(batch) + Self.forgottenSuffix)
    let kept = Set(content.kept).subtracting(forgotten)
    guard !kept.isEmpty else { return [] }
    let statuses = try statuses(of: batch, kept)
    return kept.sorted().compactMap { index in
      statuses[index].flatMap {
        QueueReceipt(.init(batch: batch, index: index), content.entries[index], $0)
      }
    }
  }

  package func forgetReceipt(_ id: QueueEntryID) throws {
    let path = Self.sentPath(id.batch)
    if id.batch.count > 1, let content = try batch(id.batch, in: Self.sent) {
      guard content.kept.contains(id.index) else { return }
      let forgotten = path + Self.forgottenSuffix
      try append("\(id.index)\n", to: forgotten)
      // Each process checks after it has added its line, so the last one sees all lines.
      guard try numbers(forgotten).isSuperset(of: content.kept) else { return }
    }
    try discardReceipts(id.batch)
  }

  // The batch first: the record of cleared entries means nothing without it.
  private func discardReceipts(_ batch: EntryFile) throws(Errno) {
    try discard(Self.sentPath(batch))
    guard batch.count > 1 else { return }
    try discard(Self.sentPath(batch) + Self.forgottenSuffix)
  }

  // MARK: Expiring

  /// How long records without a request for them are kept, in nanoseconds: a day.
  private static let keeping: UInt64 = 86_400 * 1_000_000_000

  /// Removes receipts with a term of entries processed a day ago, and notes of that age for entries
  /// that were sent without a receipt.
  ///
  /// - Parameters:
  ///   - sender: the sender; nil for all senders.
  ///   - now: in nanoseconds since 1970.
  ///   - limit: how many files of each kind are checked at most; they are chosen at random, so that
  ///     files that stay do not keep others from being checked.
  /// - Returns: the removed paths, relative to the queue's directory.
  package func expire(of sender: String? = nil, now: UInt64, limit: Int = .max) throws -> [String] {
    guard now > Self.keeping else { return [] }
    let past = now - Self.keeping
    let isOld = { (batch: EntryFile) in
      batch.order < past && (sender == nil || batch.sender == sender)
    }
    var removed: [String] = []
    for batch in (try batches(Self.sent) ?? []).filter(isOld).shuffled().prefix(limit) {
      // The time of storing, or of settling, when the queue's own name of the file was removed.
      guard try changed(Self.sentPath(batch)) ?? past < past,
        let content = try self.batch(batch, in: Self.sent),
        content.kept.allSatisfy({ content.entries[$0].receiptTerm == .dayAfterProcessing })
      else { continue }
      let ends = try statuses(of: batch, Set(content.kept))
      guard ends.values.allSatisfy({ $0 == .processed }) else { continue }
      try discardReceipts(batch)
      removed.append(Self.sentPath(batch))
    }
    let old = try ids(in: Self.outcomes).filter { isOld($0.batch) }
    for id in old.shuffled().prefix(limit) {
      let path = Self.outcomePath(id)
      guard try changed(path) ?? past < past, try !exists(Self.sentPath(id.batch)) else { continue }
      try discard(path)
      removed.append(path)
    }
    return removed
  }

  /// Returns when anything about a file last changed, in nanoseconds since 1970; nil if it does not
  /// exist.
  private func changed(_ path: String) throws(Errno) -> UInt64? {
    guard let status = try ifPresent(fileStatus(path)) else { return nil }
    return UInt64(max(status.changedSeconds, 0)) * 1_000_000_000
  }
}
