import Wormhole
import WormholePropertyLists
import WormholeSystem

/// Reads a directory as keys: a snapshot or an unpacked backup, which no process changes.
struct DirectorySource {
  let container: SharedContainer

  func read(_ faults: inout NameFaults, _ body: (CopiedKey) throws -> Void) throws -> Bool {
    for (kind, part) in container.root.meanings {
      try forEach(kind, &faults, body) { name, put in
        guard let bytes = try part.meaning(of: name, kind, in: container).bytes else { return }
        try put(CopiedKey(of: part, kind: kind, name: name, bytes))
      }
    }
    for kind in [NameKind.queue, .ownQueue] {
      try forEach(kind, &faults, body) { name, put in
        let queue = PlainQueue(container: container, name: name, kind: kind)
        guard let place = try queue.open() else { return }
        try QueueKeys(place: place).read {
          try put(CopiedKey(letter: .queue, isOwn: kind.isOwn, name: name, part: $0, value: $1))
        }
      }
    }
    try forEach(.log, &faults, body) { name, put in
      try LogKeys(log: container.log(name)).read(put)
    }
    return true
  }

  /// Reads each name of a kind; the errors of `body` are not faults of a name.
  private func forEach(
    _ kind: NameKind, _ faults: inout NameFaults, _ body: (CopiedKey) throws -> Void,
    _ read: @escaping (_ name: String, _ put: (CopiedKey) throws -> Void) throws -> Void
  ) throws {
    let names = try container.identifiers(of: kind, &faults)
    for name in names.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
      let path = NamedDirectory(root: container.root, kind: kind, identifier: name).path
      var failure: (any Error)?
      try faults.attempt("copy the container", path: path) {
        try read(name) { key in
          do { try body(key) } catch {
            failure = error
            throw error
          }
        }
      }
      if let failure { throw failure }
    }
  }
}

/// Reads a queue's directory as keys: the keys that its files would have on etcd.
struct QueueKeys {
  let place: QueueDirectory

  typealias Put = (_ part: String, _ value: [UInt8]) throws -> Void

  /// The consumer of taken batches: no consumer has this name, so they are delivered again.
  static let goneConsumer = "copied"

  func read(_ put: Put) throws {
    let failures = try place.ids(in: QueueDirectory.failed)
    for id in failures { try readFailure(id, put) }
    let moved = try readFiles(put)
    let batches = try readBatches(moved: moved, put)
    let receipts = try readReceipts(put)
    let outcomes = try readOutcomes(put)
    try putSenders(of: batches + receipts + outcomes + failures.map(\.batch), put)
  }

  // MARK: Entries

  /// Reads waiting and taken batches, in the order of sending.
  private func readBatches(moved: Set<String>, _ put: Put) throws -> [EntryFile] {
    var found = try (place.batches(QueueDirectory.pending) ?? []).map {
      (batch: $0, part: QueueDirectory.pending)
    }
    for consumer in try place.consumers() {
      let part = QueueDirectory.taken + "/" + consumer
      found += try (place.batches(part) ?? []).map { ($0, part) }
    }
    var newest: [String: QueueEntryID] = [:]
    let batches = Dictionary(grouping: found) { $0.batch.whole }
    for (name, files) in batches.sorted(by: { $0.key < $1.key }) {
      guard let (bytes, entries) = try content(of: name, files) else { continue }
      if files.contains(where: { $0.batch != name || $0.part != QueueDirectory.pending }) {
        let owner = try owner(on: name, entries, files, moved: moved)
        try put(QueueKeyPart.owners.text(name.text), owner)
      }
      try put(QueueKeyPart.entries.text(name.text), bytes)
      for (index, entry) in entries.enumerated() where entry.payload != nil {
        guard let key = entry.key else { continue }
        let mark = QueueKeyPart.marks.text("\(name.sender)/\(EncodedName.text(ofKey: key))")
        newest[mark] = .init(batch: name, index: index)
      }
    }
    for (part, id) in newest.sorted(by: { $0.key < $1.key }) {
      try put(part, Array("\(id.batch.text).\(id.index)".utf8))
    }
    return found.map(\.batch)
  }

  /// Returns the content of a batch, whose entries workers may have shared.
  private func content(
    of name: EntryFile, _ files: [(batch: EntryFile, part: String)]
  ) throws -> ([UInt8], [Batch.Entry])? {
    var content: (bytes: [UInt8], entries: [Batch.Entry])?
    for (file, part) in files {
      guard let bytes = try place.read(part + "/" + file.text) else { continue }
      let entries = Batch(found: bytes, count: name.total)?.entries ?? []
      guard var known = content, !entries.isEmpty, !known.entries.isEmpty else {
        content = content ?? (bytes, entries)
        continue
      }
      // It may be withdrawn in its own file only.
      for index in file.indices { known.entries[index] = entries[index] }
      content = (try Batch(known.entries).bytes(), known.entries)
    }
    return content
  }

  private func owner(
    on name: EntryFile, _ entries: [Batch.Entry], _ files: [(batch: EntryFile, part: String)],
    moved: Set<String>
  ) throws -> [UInt8] {
    var owner = BatchOwner(consumer: Self.goneConsumer)
    owner.settled = Set(name.indices)
    for (file, part) in files {
      let path = part + "/" + file.text
      if let lines = try place.readNote(path + QueueDirectory.deliveriesSuffix) {
        owner.deliveries += String(decoding: lines, as: UTF8.self)
      }
      owner.settled.subtract(file.indices)
      owner.settled.formUnion(try place.settled(path))
      for index in file.indices {
        guard let mark = try place.readNote("\(path).\(index)\(QueueDirectory.markSuffix)") else {
          continue
        }
        owner.marks["\(index)"] = String(decoding: mark, as: UTF8.self)
      }
    }
    for id in entries.compactMap({ $0.payload?.attachmentID }) where moved.contains(id) {
      owner.marks[BatchOwner.movedAwayMark + id] = ""
    }
    return try owner.bytes(stamp: "0")
  }

  private func putSenders(of batches: [EntryFile], _ put: Put) throws {
    var orders: [String: UInt64] = [:]
    for batch in batches { orders[batch.sender] = max(orders[batch.sender] ?? 0, batch.order) }
    for (sender, order) in orders.sorted(by: { $0.key < $1.key }) {
      try put(QueueKeyPart.senders.text(sender), Array("0 \(String(order, radix: 16))".utf8))
    }
  }

  // MARK: Records

  private func readReceipts(_ put: Put) throws -> [EntryFile] {
    let batches = try (place.batches(QueueDirectory.sent) ?? []).sorted()
    for name in batches {
      let path = QueueDirectory.sentPath(name)
      guard var bytes = try place.read(path) else { continue }
      let forgotten = try place.numbers(path + QueueDirectory.forgottenSuffix)
      var batch = Batch(Batch(found: bytes, count: name.total)?.entries ?? [])
      for index in batch.kept where forgotten.contains(index) {
        batch.entries[index].keepsReceipt = false
      }
      if !forgotten.isEmpty { bytes = try batch.bytes() }
      try put(QueueKeyPart.receipts.text("\(name.sender)/\(name.text)"), bytes)
      // On etcd nothing else shows when an entry with an expiring receipt was processed.
      let expiring = batch.kept.filter { batch.entries[$0].receiptTerm == .dayAfterProcessing }
      let statuses = try place.statuses(of: name, Set(expiring))
      for index in expiring where statuses[index] == .processed {
        let moment = try moment(of: path)
        try put(outcome(name, index), OutcomeFile.bytes(.processed, at: moment))
      }
    }
    return batches
  }

  private func readOutcomes(_ put: Put) throws -> [EntryFile] {
    let ids = try place.ids(in: QueueDirectory.outcomes)
    for id in ids {
      let path = QueueDirectory.outcomePath(id)
      guard let bytes = try place.readNote(path) else { continue }
      let moment = try moment(of: path)
      try put(
        outcome(id.batch, id.index), OutcomeFile.bytes(OutcomeFile.status(bytes), at: moment))
    }
    return ids.map(\.batch)
  }

  /// When anything about a file last changed, in nanoseconds since 1970.
  private func moment(of path: String) throws -> UInt64 {
    try place.fileStatus(path).changedMoment.unsignedNanoseconds
  }

  private func outcome(_ batch: EntryFile, _ index: Int) -> String {
    QueueKeyPart.outcomes.text("\(batch.sender)/\(batch.text).\(index)")
  }

  private func readFailure(_ id: QueueEntryID, _ put: Put) throws {
    let path = QueueDirectory.failedPath(id)
    // Anything else is not a failure of a queue: it is never shown.
    guard let bytes = try place.readNote(path), var value = PropertyListValue(found: bytes),
      case .dictionary = value
    else { return }
    value["date"] = .date(try place.fileStatus(path).modified)
    try put(QueueKeyPart.failures.text("\(id.batch.text).\(id.index)"), value.binaryBytes())
  }

  // MARK: Files

  /// Reads the files that are kept with failures, wait, or are taken: for each its pieces, then its
  /// manifest; for a moved file only the manifest.
  ///
  /// - Returns: The ids of moved files.
  private func readFiles(_ put: Put) throws -> Set<String> {
    var moved: Set<String> = []
    let taken = try place.consumers().sorted().map { QueueDirectory.taken + "/" + $0 }
    var files = try attachments(in: QueueDirectory.failed)
    // Its sender begins an incomplete file again.
    for id in try place.attachmentDirectories().sorted() {
      let path = AttachmentLayout.path(id)
      if try place.exists(path + "/" + AttachmentLayout.content) {
        files.append((.waitingFiles, id, path))
      }
    }
    files += try taken.flatMap { try attachments(in: $0) }
    for (part, id, path) in files {
      let found = try putPieces(of: path + "/" + AttachmentLayout.content, id, put)
      var manifest = AttachmentManifest(content: id, size: found?.size ?? 0, sender: "")
      manifest.whole = found?.whole ?? .init()
      try put(part.text(id), manifest.bytes())
      if found == nil, path.hasPrefix(QueueDirectory.taken) { moved.insert(id) }
    }
    return moved
  }

  /// Returns the files that a consumer has, or that are kept with failures.
  private func attachments(
    in part: String
  ) throws -> [(part: QueueKeyPart, id: String, path: String)] {
    try (place.list(part) ?? []).map(\.name.text).filter {
      $0.hasPrefix(AttachmentLayout.takenPrefix)
    }.sorted().compactMap { name in
      let id = String(name.dropFirst(AttachmentLayout.takenPrefix.count))
      return AttachmentLayout.isID(id) ? (.takenFiles, id, part + "/" + name) : nil
    }
  }

  private func putPieces(
    of content: String, _ id: String, _ put: Put
  ) throws -> (size: Int64, whole: AttachmentManifest.Whole)? {
    // It was moved.
    guard try place.exists(content) else { return nil }
    let file = try place.openFile(content, [.readOnly, .nonBlocking])
    guard try file.status().kind == .regular else { throw Errno.tooManyLinks }
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: AttachmentManifest.piece, alignment: 64)
    defer { buffer.deallocate() }
    var (hash, size) = (XXH64(), Int64(0))
    var whole = AttachmentManifest.Whole()
    while true {
      let piece = UnsafeRawBufferPointer(rebasing: buffer[..<(try file.fill(buffer))])
      whole.checksum = hash.value
      guard !piece.isEmpty else { return (size, whole) }
      hash.update(piece)
      let bytes = Array(piece)
      let checksum = XXH64.checksum(of: bytes)
      let name = AttachmentManifest.pieceName(
        of: id, number: whole.pieces.count, checksum: checksum)
      try put(QueueKeyPart.pieces.text(name), bytes)
      whole.pieces.append(checksum)
      size += Int64(piece.count)
    }
  }
}
