extension Queue.Sender {
  /// Returns all entries that were sent under this name with a receipt and are not cleared, in the
  /// order in which they were sent, by all processes and objects that use the name.
  ///
  /// - Throws: `AppGroupError` for errors of the file system. A receipt that can no longer be read,
  ///   for example after a loss of power, is left out.
  /// - Complexity: one listing; for each file the same as `status(of:)`, and reading it.
  public func receipts() throws -> [QueueReceipt] {
    try reporting("look for receipts of \"\(queue.name)\"", path: queue.path) {
      try store.receipts(of: component)
    }
  }

  /// Returns the receipts, and all waiting or taken entries that were sent under this name without
  /// one, in the order in which they were sent.
  ///
  /// - Throws: as `receipts()`.
  /// - Complexity: as `receipts()`; three listings, and reading each waiting or taken file of this
  ///   sender.
  public func outstanding() throws -> [QueueReceipt] {
    let receipts = try receipts()
    let known = Set(receipts.map(\.id))
    let others = try reporting("look for entries of \"\(queue.name)\"", path: queue.path) {
      try store.unfinished(of: component)
    }
    return (receipts + others.filter { !known.contains($0.id) })
      .sorted { $0.id.isBefore($1.id) }
  }

  /// Clears an entry whose outcome the sender has dealt with: removes its receipt and, if it was
  /// not processed, the note of its outcome. It then counts as processed.
  ///
  /// An entry that has not ended yet is still delivered, and if it then fails, a note of that
  /// stays. Without this call, receipts and their notes stay forever, except for receipts with a
  /// term; notes of entries sent without a receipt stay for a day.
  ///
  /// - Throws: `AppGroupError` for errors of the file system.
  /// - Complexity: two unlinks; if several entries are in one file, it is read, and the last one
  ///   removes it.
  public func forget(_ id: QueueEntryID) throws {
    try reporting("forget an entry of \"\(queue.name)\"", path: queue.path) {
      try store.forget(id)
    }
  }
}
