extension QueueDirectory {
  /// Returns the status of an entry.
  package func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try statuses(of: id.batch, [id.index])[id.index] ?? .processed
  }

  // Its receipt first, which does not move.
  package func entry(_ id: QueueEntryID) throws -> Batch.Entry? {
    if let entry = try entry(id, in: Self.sent),
      try !numbers(Self.sentPath(id.batch) + Self.forgottenSuffix).contains(id.index)
    {
      return entry
    }
    return try search { part in
      guard let entry = try entry(id, in: part) else { return nil }
      let isSettled =
        try part != Self.pending && settled(part + "/" + id.batch.text).contains(id.index)
      return isSettled ? nil : entry
    }
  }

  /// - Returns: nil also for a withdrawn entry.
  private func entry(_ id: QueueEntryID, in part: String) throws -> Batch.Entry? {
    guard let entry = try batch(id.batch, in: part)?.entries[id.index], entry.payload != nil
    else { return nil }
    return entry
  }
}
