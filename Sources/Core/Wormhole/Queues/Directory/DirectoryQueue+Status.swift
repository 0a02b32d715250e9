import WormholeSystem

extension DirectoryQueue {
  func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try queue.open()?.status(of: id) ?? .processed
  }

  func receipt(of id: QueueEntryID) throws -> QueueReceipt? {
    guard let place = try queue.open(), let entry = try place.entry(id),
      let payload = entry.payload
    else { return nil }
    return QueueReceipt(
      id: id, payload: payload, key: entry.key, status: try place.status(of: id))
  }

  func outcomes(of sender: String) throws -> [QueueOutcome] {
    guard let place = try queue.open() else { return [] }
    let ids = try place.ids(in: QueueDirectory.outcomes).filter { $0.batch.sender == sender }
    // A cancelled entry that has not yet been removed is reported once it is.
    return try ids.compactMap { id in
      let status = try place.status(of: id)
      return status.isEnd && status != .processed ? .init(id: id, status: status) : nil
    }
  }

  func receipts(of sender: String) throws -> [QueueReceipt] {
    guard let place = try queue.open() else { return [] }
    let batches = try place.batches(QueueDirectory.sent) ?? []
    var receipts: [QueueReceipt] = []
    for batch in batches.filter({ $0.sender == sender }).sorted() {
      receipts += try place.receipts(batch)
    }
    return receipts
  }

  func unfinished(of sender: String) throws -> [QueueReceipt] {
    try queue.open()?.waiting(of: sender) ?? []
  }

  func unfinished(limit: Int) throws -> [QueueReceipt] {
    try queue.open()?.waiting(limit: limit) ?? []
  }

  func forget(_ id: QueueEntryID) throws {
    guard let place = try queue.open() else { return }
    // The note last: a receipt without its note would mean that it was processed.
    try place.forgetReceipt(id)
    try place.discard(QueueDirectory.outcomePath(id))
  }
}
