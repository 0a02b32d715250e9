import Wormhole
import WormholeInspection
import WormholeSystem

/// The attachments of a queue on etcd; see `EtcdAttachments`.
struct EtcdQueueAttachments: AttachmentStore {
  let queue: Queue
  private let keys: EtcdAttachments

  init(_ queue: Queue, _ keys: EtcdAttachments) {
    self.queue = queue
    self.keys = keys
  }

  func location(of id: String) -> String { keys.location(of: id) }

  func stage(
    _ id: String, bytes: Int64, sender: String, continuing old: [String], for entry: QueueEntry?
  ) throws -> any AttachmentStage {
    try EtcdStage(id, bytes, sender: sender, keys: keys, queue: queue, continuing: old, for: entry)
  }

  func waiting(prefix: String) throws -> [Queue.WaitingAttachment] {
    try keys.waiting(prefix: prefix).map { .init(id: $0.id, isWhole: $0.manifest.isWhole) }
  }

  func rename(_ id: String, to newID: String) throws -> Int64? {
    try keys.rename(id, to: newID)?.size
  }

  func remove(_ id: String) throws { try keys.remove(id) }

  func giveBack(_ id: String, to path: String) throws -> Bool {
    guard let manifest = try keys.manifest(id) else { return false }
    return try giveBack(to: path) { try keys.download(manifest, into: $0) }
  }

  func entry(of sender: String, attachmentPrefix prefix: String) throws -> QueueEntryID? {
    try keys.entry(of: sender, prefix: prefix)
  }

  func incoming() throws -> [Queue.IncomingAttachment] {
    try keys.waiting().compactMap { id, manifest in
      guard !manifest.isWhole, try keys.isSent(manifest),
        case .identifier(let sender) = EncodedName.decode(manifest.sender.utf8)
      else { return nil }
      return .init(
        id: id, sender: sender, completedBytes: try keys.completed(manifest),
        totalBytes: manifest.size)
    }
  }
}

/// An attachment that is being uploaded: a manifest under a lasting session, and its pieces.
final class EtcdStage: AttachmentStage {
  let id: String
  private let keys: EtcdAttachments
  private let queue: Queue
  private let begun: EtcdAttachments.Begun
  /// The manifest lasts as long as this, until the content is whole.
  private let session: EtcdSession
  /// Shows others that it is being sent.
  private let life: EtcdSession

  init(
    _ id: String, _ bytes: Int64, sender: String, keys: EtcdAttachments, queue: Queue,
    continuing old: [String], for entry: QueueEntry?
  ) throws {
    self.id = id
    self.keys = keys
    self.queue = queue
    let limit = keys.container.location.fileLimit
    guard bytes <= limit else {
      throw AppGroupError(
        .tooLarge, "send a file to \"\(queue.name)\"", path: queue.path,
        reason: "it has \(bytes) bytes, and a file on etcd at most \(limit)",
        remedy: "raise file-limit in the container's location, or send the place of the file")
    }
    life = try keys.container.session(until: keys.soon)
    session = try keys.container.lastingSession(until: keys.soon)
    let manifest = AttachmentManifest(
      content: id, size: bytes, sender: sender, session: life.lease)
    let fence = entry?.etcdFence.map { [$0] } ?? []
    guard let begun = try keys.begin(id, manifest, continuing: old, if: fence, session: session)
    else {
      throw (entry?.batch.queue ?? queue).replaced()
    }
    self.begun = begun
  }

  func copy(
    _ source: borrowing FileDescriptor, _ status: FileStatus, durability: Durability,
    check: @escaping () throws -> Void, copied: @escaping (Int64) -> Void
  ) throws -> UInt64? {
    let action = "copy a file into \"\(queue.name)\""
    return try reporting(action, path: keys.location(of: id)) {
      let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: AttachmentManifest.piece, alignment: 64)
      defer { buffer.deallocate() }
      var (begun, hash, done) = (self.begun, XXH64(), Int64(0))
      var whole = AttachmentManifest.Whole()
      let size = begun.manifest.size
      while done < size {
        try check()
        // A piece has no condition, and one put after the end of the session stays until a sweep.
        try session.confirm(until: keys.soon)
        let room = Int(min(Int64(buffer.count), size - done))
        let count = try source.fill(UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
        // It has become shorter; the caller notices the change.
        guard count > 0 else { break }
        let piece = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        hash.update(piece)
        let bytes = Array(piece)
        let checksum = XXH64.checksum(of: bytes)
        try keys.put(bytes, whole.pieces.count, checksum: checksum, of: &begun)
        whole.pieces.append(checksum)
        done += Int64(count)
        copied(done)
      }
      whole.checksum = hash.value
      begun.manifest.whole = whole
      guard try keys.complete(id, begun) else { throw lost() }
      return hash.value
    }
  }

  /// No file becomes a key by a rename.
  func move(from source: String, durability: Durability) throws -> Bool { false }

  private func lost() -> AppGroupError {
    AppGroupError(
      .leaseLost, "send a file to \"\(queue.name)\"", path: keys.location(of: id),
      reason:
        "this process was not heard of for too long, or another one has taken this transfer over")
  }
}
