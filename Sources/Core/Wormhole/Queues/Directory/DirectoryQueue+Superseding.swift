import WormholeSystem

extension DirectoryQueue {
  /// The number withdrawn under one lease: few enough for its term, because each may take two
  /// fsyncs.
  static let withdrawnAtOnce = 16

  /// Withdraws waiting entries with a key that are older than an entry that is stored by now.
  func supersede(_ key: String, before id: QueueEntryID) {
    do {
      guard let place = try queue.open() else { return }
      var older = try place.marked(key, olderThan: id)[...]
      while !older.isEmpty {
        try superseding(Array(older.prefix(Self.withdrawnAtOnce)), key).run()
        older = older.dropFirst(Self.withdrawnAtOnce)
      }
    } catch {
      // The new entry is stored, so the call has done its work.
      Diagnostics.report(
        AppGroupError(
          .inputOutput, "withdraw older entries with the key \"\(key)\" from \"\(queue.name)\"",
          path: path, reason: "\(error)",
          remedy: "they may be delivered, too; the next send with the key tries again"))
    }
  }

  private func superseding(_ ids: [QueueEntryID], _ key: String) -> sending Change<Void> {
    let queue = queue
    return Change(queue.directory, .init()) { lease, _ in
      guard let place = try queue.open() else { return }
      for (batch, ids) in Dictionary(grouping: ids, by: \.batch) {
        _ = try place.withdraw(Set(ids.map(\.index)), of: batch, as: .superseded, lease)
        // Including those that were taken or are gone: they no longer wait.
        for id in ids { place.unmark(id, key) }
      }
    }
  }
}
