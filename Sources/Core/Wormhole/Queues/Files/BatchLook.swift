package import WormholeSystem

/// Looking up the entries of one batch, wherever it is by now.
extension QueueDirectory {
  /// - Parameters:
  ///   - indices: the entries' indices.
  ///   - readsContent: false if none of them is known to have been withdrawn lately; then an
  ///     existing file need not be read.
  /// - Returns: the status of each, as far as it is known.
  package func statuses(
    of batch: EntryFile, _ indices: Set<Int>, readsContent: Bool = true
  ) throws -> [Int: QueueEntryStatus] {
    let found = try search { part -> [Int: QueueEntryStatus]? in
      let isTaken = part != Self.pending
      let path = part + "/" + batch.text
      guard
        var found = try look(
          path, batch, indices: indices, status: isTaken ? .taken : .stored,
          readsContent: readsContent)
      else { return nil }
      if isTaken {
        let settled = try settled(path).intersection(indices).filter { found[$0] == .taken }
        found.merge(try ends(of: batch, settled)) { $1 }
      }
      return found
    }
    return try found ?? ends(of: batch, indices)
  }

  /// - Returns: nil if there is no such file.
  private func look(
    _ path: String, _ batch: EntryFile, indices: Set<Int>, status: QueueEntryStatus,
    readsContent: Bool
  ) throws -> [Int: QueueEntryStatus]? {
    var statuses = Dictionary(uniqueKeysWithValues: indices.map { ($0, status) })
    do {
      guard readsContent else { return try exists(path) ? statuses : nil }
      guard let bytes = try read(path) else { return nil }
      let content = try Batch(bytes: bytes, count: batch.count)
      for index in indices where content.entries[index].payload == nil {
        statuses[index] = content.entries[index].withdrawal
      }
      return statuses
    } catch is Batch.Unreadable {
      // Its consumer will get the same result.
      return statuses
    }
  }

  /// Returns how entries have ended that are neither waiting nor taken.
  private func ends(of batch: EntryFile, _ indices: Set<Int>) throws -> [Int: QueueEntryStatus] {
    var ends: [Int: QueueEntryStatus] = [:]
    for index in indices {
      let id = QueueEntryID(batch: batch, index: index)
      do {
        let bytes = try read(Self.outcomePath(id))
        ends[index] = bytes.map { OutcomeFile.status($0) } ?? .processed
      } catch let error as Batch.Unreadable {
        ends[index] = .failed(reason: "the note of its end is damaged: \(error.reason)")
      }
    }
    return ends
  }

  /// Returns the entries of a taken batch that are settled.
  package func settled(_ path: String) throws -> Set<Int> {
    try numbers(path + Self.doneSuffix)
  }

  /// Returns the numbers of entries in a file with one number per line.
  package func numbers(_ path: String) throws -> Set<Int> {
    guard let bytes = try readNote(path) else { return [] }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    return Set(lines.compactMap { Int($0) })
  }

  /// Returns the record beside a batch; nil if there is none.
  package func readNote(_ path: String) throws -> [UInt8]? {
    do {
      return try read(path)
    } catch is Batch.Unreadable {
      // A planted file: it is ignored, and everything is delivered or reported again.
      return nil
    }
  }

  /// Removes the record beside a batch.
  package func discardNotes(beside path: String) throws(Errno) {
    try discard(path + Self.doneSuffix)
    try discard(path + Self.deliveriesSuffix)
  }

  /// Appends a line to such a file, and creates the file if it is missing.
  package func append(_ line: String, to path: String) throws(Errno) {
    let line = Array(line.utf8)
    for _ in 0..<renameRaceLimit {
      if let file = try ifPresent(openFile(path, [.writeOnly, .append])) {
        return try file.writeAll(line)
      }
      do throws(Errno) {
        return try createFile(path).writeAll(line)
      } catch {
        // Another thread of its sender was faster.
        guard error == .alreadyExists else { throw error }
      }
    }
    throw .deviceBusy
  }
}
