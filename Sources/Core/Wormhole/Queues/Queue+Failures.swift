extension Queue {
  /// Returns the failed entries that were kept, in the order of sending.
  ///
  /// - Throws: `AppGroupError` for errors of the file system. Unreadable entries are left out.
  /// - Complexity: one listing, and one file read for each.
  public func failures() throws -> [QueueFailure] {
    try reporting("look for what has failed in \"\(name)\"", path: path) {
      try store.failures()
    }
  }

  /// Sends a failed entry that was kept again, as a new entry of the same sender and priority: with
  /// another id, and without the key, the expiry, the delay and the receipt of the original, whose
  /// outcome does not change.
  ///
  /// - Returns: the new entry's id; nil if the failed entry no longer exists.
  /// - Throws: `AppGroupError` for errors of the file system; then the entry is still kept.
  /// - Complexity: some cheap calls and one rename.
  public func retry(_ id: QueueEntryID) throws -> QueueEntryID? {
    try reporting("send again what has failed in \"\(name)\"", path: path) {
      try store.retry(id)
    }
  }

  /// Removes a failed entry that was kept, and the file that came with it.
  ///
  /// - Returns: false if the entry no longer exists.
  /// - Throws: `AppGroupError` for errors of the file system.
  @discardableResult
  public func forgetFailure(_ id: QueueEntryID) throws -> Bool {
    try reporting("forget what has failed in \"\(name)\"", path: path) {
      try store.forgetFailure(id)
    }
  }
}
