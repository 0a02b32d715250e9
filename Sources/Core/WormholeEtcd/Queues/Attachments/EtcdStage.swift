import Wormhole
import WormholeInspection
import WormholeSystem

/// An attachment that is being uploaded: a manifest under this process's session, and its pieces.
final class EtcdStage: AttachmentStage {
  private let id: String
  private let store: EtcdQueue
  private let manifest: AttachmentManifest
  /// The manifest as it was put.
  private let begun: KeyValue
  /// The manifest lasts as long as this, until the content is whole.
  private let session: EtcdSession

  init(
    _ id: String, _ bytes: Int64, sender: String, in store: EtcdQueue, for batch: TakenBatch?
  ) throws {
    self.id = id
    self.store = store
    let (queue, limit) = (store.queue, store.container.location.fileLimit)
    guard bytes <= limit else {
      throw WormholeError(
        .tooLarge, "send a file to \"\(queue.name)\"", path: queue.path,
        reason: "it has \(bytes) bytes, and a file on etcd at most \(limit)",
        remedy: "raise file-limit in the container's location, or send the place of the file")
    }
    // Its round trips pass during those that follow. If it fails, the first piece looks again.
    var looking = RequestsUnderWay<Void>()
    looking.add { try store.pieces.look() }
    defer { looking.drain() }
    var manifest = AttachmentManifest(content: id, size: bytes, sender: sender)
    manifest.isInDirectory = store.pieces.isInDirectory
    self.manifest = manifest
    // The consumer that has the entry was not replaced.
    let fence = (batch?.store as? EtcdTaken).map { [$0.fence] } ?? []
    (session, begun) = try store.files.underSession { [manifest] session in
      guard let begun = try store.begin(id, manifest, if: fence, session: session)
      else { throw (batch?.queue ?? queue).replaced() }
      return (session, begun)
    }
  }

  func copy(
    _ source: borrowing FileDescriptor, _ status: FileStatus, durability: Durability,
    check: @escaping () throws -> Void, copied: @escaping (Int64) -> Void
  ) throws {
    let action = "copy a file into \"\(store.queue.name)\""
    try reporting(action, path: store.location(of: id)) {
      let buffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: AttachmentManifest.piece, alignment: 64)
      defer { buffer.deallocate() }
      var (manifest, hash, done) = (manifest, XXH64(), Int64(0))
      var whole = AttachmentManifest.Whole()
      let (size, pieces) = (manifest.size, store.pieces)
      var sending = RequestsUnderWay<Int64>()
      // A caller that removes them finds all.
      defer { sending.drain() }
      while done < size {
        try check()
        // A piece has no condition, and one put after the end of the session stays until a sweep.
        try session.confirm(until: store.files.callDeadline)
        let room = Int(min(Int64(buffer.count), size - done))
        let count = try source.fill(UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
        // It has become shorter; the caller notices the change.
        guard count > 0 else { break }
        let piece = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        hash.update(piece)
        let bytes = Array(piece)
        let checksum = XXH64.checksum(of: bytes)
        done += Int64(count)
        let end = done
        let name = AttachmentManifest.pieceName(
          of: manifest.content, number: whole.pieces.count, checksum: checksum)
        try pieces.makeRoom(bytes.count, check)
        while sending.isFull { copied(try sending.next()) }
        sending.add {
          try pieces.put(bytes, name)
          return end
        }
        whole.pieces.append(checksum)
      }
      while !sending.isEmpty { copied(try sending.next()) }
      whole.checksum = hash.value
      manifest.whole = whole
      guard try store.complete(id, manifest, begun: begun) else {
        throw WormholeError(
          .leaseLost, "send a file to \"\(store.queue.name)\"", path: store.location(of: id),
          reason: "this process was not heard of for too long, "
            + "or another one has taken this transfer over")
      }
    }
  }
}

extension EtcdQueue {
  func stage(
    _ id: String, bytes: Int64, sender: String, for batch: TakenBatch?
  ) throws -> any AttachmentStage {
    try EtcdStage(id, bytes, sender: sender, in: self, for: batch)
  }
}
