import WormholePropertyLists
package import WormholeSystem

/// `outcomes/<batch>.<index>`: how an entry that was not processed ended, until its sender has
/// learned of it. An entry that no longer exists anywhere was processed.
package enum OutcomeFile {
  package static func id(_ name: String) -> QueueEntryID? {
    guard let dot = name.lastIndex(of: ".") else { return nil }
    return QueueEntryID("\(name[..<dot])/\(name[name.index(after: dot)...])")
  }

  /// The words for ends without a reason.
  private static let words: [QueueEntryStatus: String] = [
    .processed: "processed", .cancelled: "cancelled", .superseded: "superseded",
    .expired: "expired",
  ]

  /// - Parameter moment: the time of its end, in nanoseconds since 1970, if nothing else shows it.
  package static func bytes(_ status: QueueEntryStatus, at moment: UInt64? = nil) throws -> [UInt8]
  {
    precondition(status.isEnd, "only an end is noted")
    var value: PropertyListValue = ["outcome": .string(words[status] ?? "failed")]
    if let moment { value["ended"] = PropertyListValue(moment) }
    if let reason = status.reason { value["reason"] = .string(reason) }
    return try value.binaryBytes()
  }

  /// Returns the time of the entry's end, if its note has it.
  package static func ended(_ bytes: [UInt8]) -> UInt64? {
    // A damaged note has no time.
    (try? PropertyListValue(bytes: bytes))?["ended"]?.uint64Value
  }

  /// Unknown content means failure: the entry was not processed, or the note would not exist.
  package static func status(_ bytes: [UInt8]) -> QueueEntryStatus {
    do throws(PropertyListError) {
      let value = try PropertyListValue(bytes: bytes)
      let word = value["outcome"]?.stringValue
      return words.first { $0.value == word }?.key
        ?? .failed(reason: value["reason"]?.stringValue ?? "no reason was given")
    } catch {
      return .failed(reason: "the note of its end is damaged: \(error.reason)")
    }
  }
}

extension QueueDirectory {
  /// Returns the entries that have a file in a directory, in the order of sending.
  package func ids(in path: String) throws(Errno) -> [QueueEntryID] {
    try (list(path) ?? []).compactMap { OutcomeFile.id($0.name.text) }.ordered { $0.isBefore($1) }
  }

  /// Records how an entry ended; the first note is final.
  ///
  /// - Parameter consumer: the directory in `taken/` of the consumer that reports it: the note goes
  ///   through it, so that a replaced consumer leaves none.
  /// - Throws: `.noSuchFile` if that consumer was replaced.
  package func note(_ status: QueueEntryStatus, of id: QueueEntryID, from consumer: String?) throws
  {
    let bytes = try OutcomeFile.bytes(status)
    for _ in 0..<renameRaceLimit {
      do throws(Errno) {
        _ = try tolerating(
          [.alreadyExists], storeNote(bytes, as: Self.outcomePath(id), from: consumer))
        return
      } catch {
        // A sweep may have removed parts of the queue while it was empty.
        let writer = consumer.map { Self.takenPath($0) } ?? "."
        let isWhole = try exists(Self.outcomes) && exists(Self.staged)
        guard error == .noSuchFile, !isWhole, try exists(writer) else { throw error }
        try makeParts()
      }
    }
    throw Errno.noSuchFile
  }

  /// Stores a file through the directory of a consumer.
  ///
  /// - Parameter consumer: nil for no consumer.
  /// - Throws: `.noSuchFile` if that consumer was replaced; `.alreadyExists` if the name is taken.
  package func storeNote(
    _ bytes: [UInt8], as path: String, from consumer: String?
  ) throws(Errno) {
    guard let consumer else { return try store(bytes, as: path) }
    let passing = "\(Self.takenPath(consumer))/\(Self.passingPrefix)\(Nonce.next())"
    try store(bytes, as: passing)
    do throws(Errno) {
      try move(passing, to: path, .keep)
    } catch {
      try discard(passing)
      throw error
    }
  }
}

/// `failed/<batch>.<index>` is a batch of this one entry, with a `reason` beside its `entries`. So
/// sending it again is a rename to a new name in `pending/`. A file that came with it waits in
/// `failed/attachment-<id>`.
///
/// **What a crash leaves.** The entry is kept first, then its file is moved, and then it ends like
/// any other failed entry. A consumer that finds a kept entry that has not ended completes these
/// steps.
extension QueueDirectory {
  package static func failedAttachmentPath(_ id: String) -> String {
    failed + "/" + AttachmentLayout.takenPrefix + id
  }

  /// - Returns: nil if it does not exist or cannot be read.
  package func failure(_ id: QueueEntryID) throws -> QueueFailure? {
    let path = Self.failedPath(id)
    do {
      guard let bytes = try read(path),
        let payload = try Batch(bytes: bytes, count: 1).entries[0].payload
      else { return nil }
      let reason = try PropertyListValue(bytes: bytes)["reason"]?.stringValue
      return QueueFailure(
        id: id, payload: payload, reason: reason ?? "no reason was given",
        date: try fileStatus(path).modified)
    } catch is Batch.Unreadable {
      return nil
    } catch let error as Errno where error == .noSuchFile {
      // Sent again or removed just now.
      return nil
    }
  }

  /// Keeps an entry that fails, and its file.
  ///
  /// - Throws: `.noSuchFile` if its consumer was replaced.
  package func keep(
    _ entry: Batch.Entry, _ id: QueueEntryID, reason: String, of consumer: String
  ) throws {
    guard let payload = entry.payload else { return }
    let list: PropertyListValue = .array([Batch.Entry(payload: payload).value])
    let bytes = try PropertyListValue.dictionary(["entries": list, "reason": .string(reason)])
      .binaryBytes()
    try makeDirectory(Self.failed)
    _ = try tolerating(
      [.alreadyExists], storeNote(bytes, as: Self.failedPath(id), from: consumer))
    if let attachment = payload.attachmentID {
      try moveOnce(
        AttachmentLayout.takenPath(attachment, by: consumer),
        to: Self.failedAttachmentPath(attachment))
    }
  }

  /// Moves a file that may have been moved already.
  package func moveOnce(_ path: String, to other: String) throws(Errno) {
    _ = try tolerating([.noSuchFile, .alreadyExists], move(path, to: other, .keep))
  }

  /// Moves a file that other processes may move to other names at the same moment.
  ///
  /// If a move takes two steps (`RenameMode.keep`), the lock admits one process; the others wait for it,
  /// and find nothing.
  ///
  /// - Throws: `.noSuchFile` if another process has moved it; `.alreadyExists` if the name is taken;
  ///   `.deviceBusy` if it is locked for a second.
  package func moveAlone(_ path: String, to other: String) throws(Errno) {
    if !LeaseFault.lockingFailures.isActive,
      try tolerating([.unsupported], move(path, to: other, .keepAtOnce)) != nil
    {
      return
    }
    let deadline = ContinuousClock.now + .seconds(1)
    while true {
      // Open for writing, or NFS grants no such lock (flock(2)).
      let file = try openFile(path, [.readWrite, .nonBlocking])
      if try file.tryLock(.exclusive) { return try move(path, to: other, .keep) }
      // Its holder may be no mover: a child that was just forked shares its writer's lock until its
      // exec.
      guard ContinuousClock.now < deadline else { throw .deviceBusy }
      pauseThread(.milliseconds(1))
    }
  }
}
