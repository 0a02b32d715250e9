package import WormholeSystem

/// Looking up the entries of batches, wherever they are by now.
extension QueueDirectory {
  package func status(of id: QueueEntryID) throws -> QueueEntryStatus {
    try statuses(of: id.batch, [id.index])[id.index] ?? .processed
  }

  package func statuses(
    of batch: EntryFile, _ indices: Set<Int>
  ) throws -> [Int: QueueEntryStatus] {
    var found: [Int: QueueEntryStatus] = [:]
    _ = try search(isAlone: batch.count == 1) { part -> Void? in
      for file in files(of: batch, indices) where found.count < indices.count {
        let rest = indices.intersection(file.indices).subtracting(found.keys)
        if !rest.isEmpty { try look(file, rest, in: part).map { found.merge($0.statuses) { $1 } } }
      }
      return found.count < indices.count ? nil : ()
    }
    for index in indices where found[index] == nil {
      found[index] = try end(of: .init(batch: batch, index: index))
    }
    return found
  }

  /// Returns the files that may stand for entries of a batch: the batch itself, and those of single
  /// entries. In this order, a look into a directory in which it is being shared finds one of them.
  private func files(of batch: EntryFile, _ indices: Set<Int>) -> [EntryFile] {
    [batch] + (batch.count > 1 ? indices.map { batch.of($0) } : [])
  }

  /// Returns the content and the statuses of entries of a batch that waits or is taken. The content
  /// is nil if it cannot be read: its consumer will get the same result.
  ///
  /// - Returns: nil if it is not in this part.
  private func look(
    _ name: EntryFile, _ indices: Set<Int>, in part: String
  ) throws -> (content: Batch?, statuses: [Int: QueueEntryStatus])? {
    let path = part + "/" + name.text
    var content: Batch?
    do {
      guard let bytes = try read(path) else { return nil }
      content = try Batch(bytes: bytes, count: name.total)
    } catch is Batch.Unreadable {
      content = nil
    }
    let isTaken = part != Self.pending
    let settled = isTaken ? try settled(path) : []
    var statuses: [Int: QueueEntryStatus] = [:]
    for index in indices {
      if let entry = content?.entries[index], entry.payload == nil {
        statuses[index] = entry.withdrawal
      } else if settled.contains(index) {
        statuses[index] = try end(of: .init(batch: name, index: index))
      } else {
        statuses[index] = isTaken ? .taken : .stored
      }
    }
    return (content, statuses)
  }

  /// Returns how an entry that is neither waiting nor taken has ended.
  private func end(of id: QueueEntryID) throws -> QueueEntryStatus {
    do {
      return try read(Self.outcomePath(id)).map { OutcomeFile.status($0) } ?? .processed
    } catch let error as Batch.Unreadable {
      return .failed(reason: "the note of its end is damaged: \(error.reason)")
    }
  }

  /// Returns the content of an entry as long as it exists.
  package func entry(_ id: QueueEntryID) throws -> Batch.Entry? {
    // Its receipt first, which does not move.
    if let entry = try batch(id.batch, in: Self.sent)?.entries[id.index], entry.payload != nil,
      try !numbers(Self.sentPath(id.batch) + Self.forgottenSuffix).contains(id.index)
    {
      return entry
    }
    return try search(isAlone: id.batch.count == 1) { part in
      for file in files(of: id.batch, [id.index]) {
        let look = try look(file, [id.index], in: part)
        if look?.statuses[id.index]?.isEnd == false { return look?.content?.entries[id.index] }
      }
      return nil
    }
  }

  /// Returns the taken and waiting entries, in no order.
  ///
  /// - Parameters:
  ///   - sender: their sender; nil for all senders.
  ///   - limit: How many waiting entries are enough, from the first to be delivered.
  func unfinished(of sender: String?, limit: Int) throws -> [QueueReceipt] {
    var found: [QueueEntryID: QueueReceipt] = [:]
    _ = try search { part -> Void? in
      let isWaiting = part == Self.pending
      for batch in isWaiting && limit < .max ? try ordered(part) : try batches(part) ?? []
      where sender == nil || batch.sender == sender {
        if isWaiting, found.count >= limit { break }
        let new = batch.indices.filter { found[.init(batch: batch, index: $0)] == nil }
        guard !new.isEmpty else { continue }
        let look = try look(batch, Set(new), in: part)
        for (index, status) in look?.statuses ?? [:] where !status.isEnd {
          let id = QueueEntryID(batch: batch, index: index)
          found[id] = look?.content.flatMap { QueueReceipt(id, $0.entries[index], status) }
        }
      }
      return nil
    }
    return Array(found.values)
  }

  /// Returns the entries of a batch in a part of the queue that have not ended; nil if it is not there.
  fileprivate func receipts(
    _ batch: EntryFile, in part: String
  ) throws -> (receipts: [QueueReceipt], isReadable: Bool)? {
    guard let look = try look(batch, Set(batch.indices), in: part) else { return nil }
    let receipts = look.statuses.sorted { $0.key < $1.key }.compactMap { index, status in
      status.isEnd
        ? nil
        : look.content.flatMap {
          QueueReceipt(.init(batch: batch, index: index), $0.entries[index], status)
        }
    }
    return (receipts, look.content != nil)
  }

  // MARK: Notes beside a batch

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
      do throws(Errno) {
        // A planted FIFO would block, and a file with a second name is not ours to change.
        if let file = try ifPresent(openFile(path, [.writeOnly, .append, .nonBlocking])) {
          let status = try file.status()
          guard status.kind == .regular, status.links == 1 else { throw .noSuchDevice }
          return try file.writeAll(line)
        }
      } catch {
        guard [.noSuchDevice, .tooManyLinks, .isDirectory].contains(error) else { throw error }
        try putAside(path)
      }
      // Nil if another thread of its sender was faster.
      if let file = try tolerating([.alreadyExists], createFile(path)) {
        return try file.writeAll(line)
      }
    }
    throw .deviceBusy
  }
}

extension QueueDirectory {
  /// Puts aside a planted entry of a directory in the queue.
  package func putAside(_ path: String) throws(Errno) {
    let parts = path.split(separator: "/")
    let directory = try openFile(
      parts.dropLast().joined(separator: "/"), [.pathOnly, .directory])
    let name = FileName(String(parts.last ?? ""))
    _ = try ifPresent(Quarantine.take(name, at: directory.rawValue, root: root))
  }

  /// Removes what is left of a batch or an attachment, and puts aside what is neither.
  package func clear(
    _ path: String, by remove: (String) throws(Errno) -> Void
  ) throws(Errno) {
    do throws(Errno) {
      try remove(path)
    } catch {
      guard [.isDirectory, .notDirectory, .directoryNotEmpty].contains(error) else { throw error }
      try putAside(path)
    }
  }
}

/// Receipts.
///
/// The batch of such an entry has a second name, `sent/<batch>`, from the moment it is stored until
/// the sender has cleared all entries in it that keep a receipt. So a receipt costs a name, not a
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
      // One with a future time was sent while the clock was ahead. Its file's time decides.
      (batch.order < past || batch.order > now) && (sender == nil || batch.sender == sender)
    }
    var removed: [String] = []
    for batch in (try batches(Self.sent) ?? []).filter(isOld).shuffled().prefix(limit) {
      // The time of storing, or of settling, when the queue's own name of the file was removed.
      guard try changed(Self.sentPath(batch)) ?? past < past,
        let content = try self.batch(batch, in: Self.sent),
        content.kept.allSatisfy({ content.entries[$0].receiptTerm == .dayAfterProcessing }),
        try statuses(of: batch, Set(content.kept)).values.allSatisfy({ $0 == .processed })
      else { continue }
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
    try ifPresent(fileStatus(path))?.changedMoment.unsignedNanoseconds
  }
}

/// A listing of all entries of a queue, of which consumers may take some meanwhile.
struct QueueListing {
  /// The taken ones.
  private(set) var found: [QueueEntryID: QueueReceipt] = [:]
  /// The batches that cannot be read, with the reasons.
  private(set) var faults: [EntryFile: String] = [:]

  mutating func addTaken(at place: QueueDirectory) throws {
    for consumer in try place.consumers() {
      let part = QueueDirectory.takenPath(consumer)
      for batch in try place.batches(part) ?? [] {
        for receipt in try receipts(batch, in: part, at: place) ?? [] {
          found[receipt.id] = receipt
        }
      }
    }
  }

  /// Returns the entries of a batch that waited, except those that it has found as taken.
  mutating func waiting(_ batch: EntryFile, at place: QueueDirectory) throws -> [QueueReceipt] {
    let waiting =
      try receipts(batch, in: QueueDirectory.pending, at: place)
      // Taken since, or shared among workers.
      ?? batch.indices.compactMap { index in
        let id = QueueEntryID(batch: batch, index: index)
        let status = try place.status(of: id)
        return status.isEnd ? nil : try place.entry(id).flatMap { QueueReceipt(id, $0, status) }
      }
    return waiting.filter { found[$0.id] == nil }
  }

  private mutating func receipts(
    _ batch: EntryFile, in part: String, at place: QueueDirectory
  ) throws -> [QueueReceipt]? {
    guard let (receipts, isReadable) = try place.receipts(batch, in: part) else { return nil }
    if !isReadable { faults[batch] = try place.fault(of: batch, in: part)?.reason }
    return receipts
  }
}
