import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// Writes the keys of a queue as the files of its directory, which no other process uses yet.
final class QueueWriter {
  private let place: QueueDirectory
  /// The owners, by their batches; an owner record comes before its batch.
  private var owners: [String: BatchOwner] = [:]
  /// The ids of files that are kept with failures.
  private var kept: Set<String> = []
  private var waiting: [(id: String, manifest: AttachmentManifest)] = []
  private var taken: [(id: String, manifest: AttachmentManifest)] = []
  private var contents: [String: Content] = [:]

  /// The pieces of a file so far.
  private struct Content {
    var size: Int64 = 0
    var hash = XXH64()
  }

  /// The directory of taken batches: the next consumer's.
  private static let gone = QueueDirectory.taken + "/free"

  init(_ place: QueueDirectory) throws {
    self.place = place
    try place.makeParts()
  }

  func put(_ part: String, _ value: [UInt8]) throws {
    let parts = part.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count > 1, let part = QueueKeyPart(rawValue: parts[0]) else { return }
    let rest = parts[1]
    // Keys are foreign text: no name becomes a path with several parts.
    guard parts.count == 2 || [.receipts, .outcomes, .pieces].contains(part) else { return }
    switch part {
    case .owners: owners[rest] = BatchOwner(value)
    case .entries: try putBatch(rest, value)
    case .receipts: try parts.last.flatMap { EntryFile($0) }.map { try putReceipt($0, value) }
    case .outcomes: try parts.last.flatMap { OutcomeFile.id($0) }.map { try putOutcome($0, value) }
    case .failures: try OutcomeFile.id(rest).map { try putFailure($0, value) }
    case .waitingFiles: try manifest(rest, value).map { waiting.append($0) }
    case .takenFiles: try manifest(rest, value).map { taken.append($0) }
    case .pieces: try putPiece(content: parts[1], value)
    // Senders find their order in their batches, which have the keys, too.
    default: return
    }
  }

  // MARK: Entries

  private func putBatch(_ text: String, _ bytes: [UInt8]) throws {
    guard let name = EntryFile(text) else { return }
    let owner = owners[text]
    let path = (owner == nil ? QueueDirectory.pending : Self.gone) + "/" + text
    try write(bytes, as: path)
    if let owner { try putOwner(owner, path) }
    guard let batch = Batch(found: bytes, count: name.total) else { return }
    try place.mark(path, as: name, batch.keys)
  }

  private func putOwner(_ owner: BatchOwner, _ path: String) throws {
    if !owner.deliveries.isEmpty {
      try write(Array(owner.deliveries.utf8), as: path + QueueDirectory.deliveriesSuffix)
    }
    for index in owner.settled.sorted() {
      try place.append("\(index)\n", to: path + QueueDirectory.doneSuffix)
    }
    for (mark, text) in owner.marks {
      if let index = Int(mark) {
        try write(Array(text.utf8), as: "\(path).\(index)\(QueueDirectory.markSuffix)")
      }
    }
  }

  // MARK: Records

  private func putReceipt(_ name: EntryFile, _ bytes: [UInt8]) throws {
    try place.makeDirectory(QueueDirectory.sent)
    try write(bytes, as: QueueDirectory.sentPath(name))
  }

  /// In a directory, a missing entry without a note was processed.
  private func putOutcome(_ id: QueueEntryID, _ bytes: [UInt8]) throws {
    let status = OutcomeFile.status(bytes)
    guard status != .processed else { return }
    try write(OutcomeFile.bytes(status), as: QueueDirectory.outcomePath(id))
  }

  private func putFailure(_ id: QueueEntryID, _ bytes: [UInt8]) throws {
    try place.makeDirectory(QueueDirectory.failed)
    let path = QueueDirectory.failedPath(id)
    try write(bytes, as: path)
    // Anything else is not a failure of a queue: it is never shown.
    guard let batch = Batch(found: bytes, count: 1) else { return }
    if let file = batch.entries[0].payload?.attachmentID { kept.insert(file) }
    guard let date = PropertyListValue(found: bytes)?["date"]?.dateValue?.timeIntervalSince1970,
      abs(date) < 1e11
    else { return }
    let seconds = date.rounded(.down)
    try place.openFile(path, .writeOnly)
      .setModified(seconds: Int64(seconds), nanoseconds: Int64((date - seconds) * 1e9))
  }

  // MARK: Files

  // Its sender begins an incomplete file again.
  private func manifest(
    _ id: String, _ bytes: [UInt8]
  ) throws -> (id: String, manifest: AttachmentManifest)? {
    guard AttachmentLayout.isID(id), let manifest = AttachmentManifest(bytes),
      manifest.isWhole
    else { return nil }
    return (id, manifest)
  }

  private func stagedPath(_ content: String) -> String {
    QueueDirectory.staged + "/" + content
  }

  private func putPiece(content name: String, _ bytes: [UInt8]) throws {
    guard AttachmentLayout.isID(name) else { return }
    if contents[name] == nil { try write([], as: stagedPath(name)) }
    try place.openFile(stagedPath(name), [.writeOnly, .append]).writeAll(bytes)
    bytes.withUnsafeBytes { contents[name, default: Content()].hash.update($0) }
    contents[name]?.size += Int64(bytes.count)
  }

  /// Gives each file its entry's place.
  func finish() throws {
    let moved = Set(
      owners.values.flatMap(\.marks.keys).filter { $0.hasPrefix(BatchOwner.movedAwayMark) }.map {
        String($0.dropFirst(BatchOwner.movedAwayMark.count))
      })
    if !waiting.isEmpty { try place.makeDirectory(AttachmentLayout.directory) }
    for (id, manifest) in waiting { try putFile(manifest, in: AttachmentLayout.path(id)) }
    for (id, manifest) in taken {
      let part = kept.contains(id) ? QueueDirectory.failed : Self.gone
      let path = "\(part)/\(AttachmentLayout.takenPrefix)\(id)"
      // An empty directory shows that the file was moved away.
      if moved.contains(id) {
        try place.makeDirectory(path)
      } else {
        try putFile(manifest, in: path)
      }
    }
    try place.sweep([.unfinished])
  }

  private func putFile(_ manifest: AttachmentManifest, in path: String) throws {
    try place.makeDirectory(path)
    let content = path + "/" + AttachmentLayout.content
    let found = contents[manifest.content] ?? Content()
    guard found.size == manifest.size, found.hash.value == manifest.whole?.checksum else {
      throw WormholeError(
        .damaged, "copy the container", path: manifest.content,
        reason: "the \(found.size) bytes of this file differ from those that were sent",
        remedy: "let its receiver have it first, which reports it, or cancel it")
    }
    if contents[manifest.content] == nil { return try write([], as: content) }
    try place.move(stagedPath(manifest.content), to: content, .keep)
  }

  private func write(_ bytes: [UInt8], as path: String) throws {
    try place.createFile(path).writeAll(bytes)
  }
}
