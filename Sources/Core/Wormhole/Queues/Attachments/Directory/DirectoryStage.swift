import WormholeSystem

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
      do throws(Errno) {
        try place.makeParts()
        try place.makeDirectory(AttachmentPlace.directory)
      } catch {
        // Removed as a whole in the meantime.
        guard error == .noSuchFile else { throw error }
        continue
      }
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
    // Begun with the first copied piece, because shared content is not read.
    var checksum: OverlappedChecksum?
    defer { checksum?.abandon() }
    let descriptor = source.rawValue
    var failure: Errno?
    try withoutActuallyEscaping(check) { check in
      var copy = ContentCopy(
        check: {
          if let failure { throw failure }
          try check()
        },
        copied: { offset in
          do throws(Errno) {
            if isDense, checksum == nil {
              // The same file, with its own position.
              checksum = OverlappedChecksum(
                of: try .open("/proc/self/fd/\(descriptor)", .readOnly))
            }
            checksum?.advance(to: offset)
          } catch {
            failure = error
          }
          copied(offset)
        })
      try copy.copy(source, status, to: target)
    }
    if let failure { throw failure }
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
