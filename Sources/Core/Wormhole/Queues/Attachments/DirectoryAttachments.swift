import WormholePropertyLists
import WormholeSystem

/// The attachments of a queue in a directory; see `AttachmentLayout`.
struct DirectoryAttachments: AttachmentStore {
  let queue: PlainQueue

  func stage(
    _ id: String, bytes: Int64, sender: String, for batch: TakenBatch?
  ) throws -> any AttachmentStage {
    try DirectoryStage(id, queue, sender: sender, for: batch)
  }

  func waiting(prefix: String) throws -> [WaitingAttachment] {
    try withQueueIfAny { place in
      try place.attachmentDirectories().filter { $0.hasPrefix(prefix) }.map { id in
        let content = AttachmentLayout.path(id) + "/" + AttachmentLayout.content
        return .init(id: id, isWhole: try place.exists(content))
      }
    } ?? []
  }

  func rename(_ id: String, to newID: String) throws -> Bool {
    try withQueueIfAny { place in
      try ifPresent(place.move(AttachmentLayout.path(id), to: AttachmentLayout.path(newID), .keep))
        != nil
    } ?? false
  }

  func remove(_ id: String) throws {
    try withQueueIfAny { place in
      try place.removeAttachmentDirectory(AttachmentLayout.path(id))
    }
  }

  private func withQueueIfAny<Result>(_ body: (QueueDirectory) throws -> Result) throws -> Result? {
    guard let place = try queue.open() else { return nil }
    return try body(place)
  }
}

/// An attachment that is being created in a directory, locked by this process until it is closed.
final class DirectoryStage: AttachmentStage {
  private let id: String
  private let queue: PlainQueue
  private let sender: String
  private let directory: SharedDescriptor

  init(_ id: String, _ queue: PlainQueue, sender: String, for batch: TakenBatch?) throws {
    self.id = id
    self.queue = queue
    self.sender = sender
    let path = AttachmentLayout.path(id)
    for _ in 0..<renameRaceLimit {
      let place = try queue.openOrMake()
      try place.makeParts()
      // Nil if it was removed as a whole in the meantime.
      guard try ifPresent(place.makeDirectory(AttachmentLayout.directory)) != nil else { continue }
      if let batch {
        directory = try Self.make(id, for: batch, in: place)
        return
      }
      do throws(Errno) {
        try place.makeDirectory(path)
        let opened = try place.openFile(path, [.readOnly, .directory])
        // A sweeper that holds the lock now removes the directory, or has just removed it.
        guard try opened.tryLock(.exclusive), try opened.status().links > 0 else { continue }
        directory = SharedDescriptor(opened)
        return
      } catch {
        guard error == .noSuchFile else { throw error }
      }
    }
    throw Errno.deviceBusy
  }

  // Other processes do not look into the consumer's directory, so it is locked before they see it.
  private static func make(
    _ id: String, for batch: TakenBatch, in place: QueueDirectory
  ) throws -> SharedDescriptor {
    let own = try batch.open()
    let path = "\(QueueDirectory.taken)/\(batch.consumer)/\(AttachmentLayout.makingPrefix)\(id)"
    do throws(Errno) {
      try own.makeDirectory(path)
      let opened = try own.openFile(path, [.readOnly, .directory])
      guard try opened.tryLock(.exclusive) else { throw .deviceBusy }
      try own.move(path, to: AttachmentLayout.path(id), at: place.descriptor.rawValue, .keep)
      return SharedDescriptor(opened)
    } catch {
      guard error == .noSuchFile else { throw error }
      throw batch.queue.replaced()
    }
  }

  // MARK: Content

  /// Copies a file into the attachment: shared with the source if the file system can do that,
  /// otherwise inside the kernel, otherwise through memory; holes stay holes.
  func copy(
    _ source: borrowing FileDescriptor, _ status: FileStatus, durability: Durability,
    check: @escaping () throws -> Void, copied: @escaping (Int64) -> Void
  ) throws {
    try reporting("copy a file into \"\(queue.name)\"", path: path) {
      let name = "\(AttachmentLayout.copyingPrefix)\(status.size)-\(sender)"
      do {
        let access = queue.directory.root.access
        let file = try access.createFile(name, at: directory.descriptor.rawValue)
        var copy = ContentCopy(check: check, copied: copied)
        try copy.copy(source, status, to: file)
        if durability == .durable { try file.synchronize() }
        try rename(
          name, at: directory.descriptor.rawValue, to: AttachmentLayout.content,
          at: directory.descriptor.rawValue, .keep)
        // The entry that names it is stored durably afterwards, which covers the directories above.
        guard durability == .durable else { return }
        try directory.descriptor.synchronize()
        try queue.openOrMake().synchronize(AttachmentLayout.directory)
      } catch let error as Errno where error == .noSuchFile {
        throw WormholeError(
          .leaseLost, "send a file to \"\(queue.name)\"", path: path,
          reason: "another process has taken this transfer over, because this one was stopped")
      }
    }
  }

  private var path: String { queue.directory.path + "/" + AttachmentLayout.path(id) }
}
