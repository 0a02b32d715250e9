import WormholePropertyLists
import WormholeSystem

/// The attachments of a queue in a directory; see `AttachmentPlace`.
struct DirectoryAttachments: AttachmentStore {
  let queue: Queue

  func location(of id: String) -> String {
    "\(queue.directory.path)/\(AttachmentPlace.path(id))/\(AttachmentPlace.content)"
  }

  func stage(
    _ id: String, bytes: Int64, sender: String, continuing old: [String], for entry: QueueEntry?
  ) throws -> any AttachmentStage {
    try DirectoryStage(id, queue, sender: sender, for: entry?.batch)
  }

  func waiting(prefix: String) throws -> [Queue.WaitingAttachment] {
    try withPlaceIfAny { place in
      try place.attachmentDirectories().filter { $0.hasPrefix(prefix) }.map { id in
        let content = AttachmentPlace.path(id) + "/" + AttachmentPlace.content
        return .init(id: id, isWhole: try place.exists(content))
      }
    } ?? []
  }

  func rename(_ id: String, to newID: String) throws -> Int64? {
    try withPlaceIfAny { place in
      let path = AttachmentPlace.path(newID)
      guard try ifPresent(place.move(AttachmentPlace.path(id), to: path, .keep)) != nil else {
        return nil
      }
      return try ifPresent(place.fileStatus(path + "/" + AttachmentPlace.content).size)
    } ?? nil
  }

  func remove(_ id: String) throws {
    try withPlaceIfAny { place in
      try place.removeAttachmentDirectory(AttachmentPlace.path(id))
    }
  }

  func giveBack(_ id: String, to path: String) throws -> Bool {
    try withPlaceIfAny { place in
      let content = AttachmentPlace.path(id) + "/" + AttachmentPlace.content
      do throws(Errno) {
        try place.move(content, to: path, at: Directory.current, .keep)
        return true
      } catch {
        switch error {
        case .noSuchFile, .alreadyExists, .accessDenied: return false
        case .crossesDevices: break
        default: throw error
        }
      }
      let source = try place.openFile(content, [.readOnly, .nonBlocking])
      guard try source.status().kind == .regular else { return false }
      return try giveBack(to: path) { file in
        var copy = ContentCopy(check: {})
        try copy.copy(source, source.status(), to: file)
        return true
      }
    } ?? false
  }

  func entry(of sender: String, attachmentPrefix prefix: String) throws -> QueueEntryID? {
    try withPlaceIfAny { place in
      try place.search { part in
        for batch in try place.batches(part) ?? [] where batch.sender == sender {
          let ids = try place.attachmentIDs(batch, in: part)
          if let index = ids.firstIndex(where: { $0?.hasPrefix(prefix) == true }) {
            return QueueEntryID(batch: batch, index: index)
          }
        }
        return nil
      }
    } ?? nil
  }

  func incoming() throws -> [Queue.IncomingAttachment] {
    try withPlaceIfAny { place in
      var incoming: [Queue.IncomingAttachment] = []
      for id in try place.attachmentDirectories() {
        do throws(Errno) {
          let path = AttachmentPlace.path(id)
          let directory = try place.openFile(path, [.readOnly, .directory])
          // The copying process has it locked.
          guard try !directory.tryLock(.shared) else { continue }
          for entry in try directory.entries() {
            guard let (total, sender) = AttachmentPlace.copying(entry.name.text) else { continue }
            let size = try fileStatus(entry.name, at: directory.rawValue).size
            incoming.append(
              .init(id: id, sender: sender, completedBytes: min(size, total), totalBytes: total))
          }
        } catch {
          // Finished or given up between two checks.
          guard error == .noSuchFile else { throw error }
        }
      }
      return incoming
    } ?? []
  }

  private func withPlaceIfAny<Result>(_ body: (QueueDirectory) throws -> Result) throws -> Result? {
    guard let place = try queue.open() else { return nil }
    return try body(place)
  }
}

/// An attachment that is being created in a directory, locked by this process until it is closed.
final class DirectoryStage: AttachmentStage {
  let id: String
  private let queue: Queue
  private let sender: String
  private let directory: SharedDescriptor

  init(_ id: String, _ queue: Queue, sender: String, for batch: TakenBatch?) throws {
    self.id = id
    self.queue = queue
    self.sender = sender
    let path = AttachmentPlace.path(id)
    for _ in 0..<renameRaceLimit {
      let place = try queue.openOrMake()
      try place.makeParts()
      // Nil if it was removed as a whole in the meantime.
      guard try ifPresent(place.makeDirectory(AttachmentPlace.directory)) != nil else { continue }
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
    let path = "\(QueueDirectory.taken)/\(batch.consumer)/\(AttachmentPlace.makingPrefix)\(id)"
    do throws(Errno) {
      try own.makeDirectory(path)
      let opened = try own.openFile(path, [.readOnly, .directory])
      guard try opened.tryLock(.exclusive) else { throw .deviceBusy }
      try own.move(path, to: AttachmentPlace.path(id), at: place.descriptor.rawValue, .keep)
      return SharedDescriptor(opened)
    } catch {
      guard error == .noSuchFile else { throw error }
      throw batch.queue.replaced()
    }
  }

  // MARK: Content

  /// Copies a file into the attachment: shared with the source if the file system can do that,
  /// otherwise inside the kernel, otherwise through memory; holes stay holes. The checksum is computed
  /// by another thread during the copy; there is none for shared content and for a file with holes.
  func copy(
    _ source: borrowing FileDescriptor, _ status: FileStatus, durability: Durability,
    check: @escaping () throws -> Void, copied: @escaping (Int64) -> Void
  ) throws -> UInt64? {
    try reporting("copy a file into \"\(queue.name)\"", path: path) {
      let name = "\(AttachmentPlace.copyingPrefix)\(status.size)-\(sender)"
      do {
        let access = queue.directory.root.access
        let file = try access.createFile(name, at: directory.descriptor.rawValue)
        let checksum = try Self.copy(source, status, to: file, check: check, copied: copied)
        if durability == .durable { try file.synchronize() }
        try rename(
          name, at: directory.descriptor.rawValue, to: AttachmentPlace.content,
          at: directory.descriptor.rawValue, .keep)
        if durability == .durable { try synchronize() }
        return checksum
      } catch let error as Errno where error == .noSuchFile {
        throw lost()
      }
    }
  }

  private static func copy(
    _ source: borrowing FileDescriptor, _ status: FileStatus, to target: borrowing FileDescriptor,
    check: @escaping () throws -> Void, copied: @escaping (Int64) -> Void
  ) throws -> UInt64? {
    guard status.size > 0 else { return XXH64().value }
    let isDense = status.allocatedBytes >= status.size
    var checksum: OverlappedChecksum?
    defer { checksum?.abandon() }
    let descriptor = source.rawValue
    var copy = ContentCopy {
      try check()
      try checksum?.check()
    } copied: { offset in
      // Begun with the first copied piece, because shared content is not read; through another
      // descriptor of the same file, with its own position.
      if isDense, checksum == nil {
        checksum = OverlappedChecksum(of: "/proc/self/fd/\(descriptor)")
      }
      checksum?.advance(to: offset)
      copied(offset)
    }
    try copy.copy(source, status, to: target)
    return try checksum?.finish(at: min(status.size, try target.status().size))
  }

  /// A rename; not onto another file system.
  func move(from source: String, durability: Durability) throws -> Bool {
    try reporting("move a file into \"\(queue.name)\"", path: path) {
      do throws(Errno) {
        // In one step on every file system, because the file must not keep its old name. Nothing is
        // in the way: only this process creates entries in the directory that it has locked.
        try rename(
          source, at: Directory.current, to: AttachmentPlace.content,
          at: directory.descriptor.rawValue)
      } catch {
        if error == .crossesDevices { return false }
        guard error == .noSuchFile else { throw error }
        throw lost()
      }
      let content = try FileDescriptor.openBeneath(
        AttachmentPlace.content, at: directory.descriptor.rawValue, [.readOnly, .nonBlocking])
      let access = queue.directory.root.access
      if access == .group {
        try content.setOwner(nil, group: directory.descriptor.status().group)
        try content.setPermissions(access.fileMode)
      }
      if durability == .durable {
        try content.synchronize()
        try synchronize()
        try FileDescriptor.open(
          String(source[..<(source.lastIndex(of: "/") ?? source.startIndex)]) + "/",
          [.readOnly, .directory]
        ).synchronize()
      }
      return true
    }
  }

  private var path: String { queue.directory.path + "/" + AttachmentPlace.path(id) }

  // The entry that names it is stored durably afterwards, which covers the directories above.
  private func synchronize() throws {
    try directory.descriptor.synchronize()
    try queue.openOrMake().synchronize(AttachmentPlace.directory)
  }

  private func lost() -> AppGroupError {
    AppGroupError(
      .leaseLost, "send a file to \"\(queue.name)\"", path: path,
      reason: "another process has taken this transfer over, because this one was stopped, or the "
        + "file is gone")
  }
}
