import SystemCalls

/// `mailboxes/<address>/`: what one process is told while it lives.
///
/// ```
/// owner                            locked by the process whose mailbox it is, as long as it is
/// staged-<nonce>                   an entry being written
/// <stamp>-<sender>-<bytes>.plist   an entry: complete before it was renamed to this name
/// ```
///
/// **Who makes what.** Only the owner makes the directory; who posts never does, so a post into a
/// mailbox that is gone fails. Posting is create, write, rename.
///
/// **At most once.** Only the owner reads an entry, and unlinks it. With the owner ends everything
/// that was not read: nobody else ever takes it.
///
/// **Who is dead.** A mailbox whose `owner` nobody has locked, or that has none. The lock's file is
/// open for writing, so its end is IN_CLOSE_WRITE for whoever watches it, sent just before the lock
/// is free; looks open it for reading, and tell nobody.
///
/// **What a crash leaves**: `.new-*`, of whoever died while making one; the directory of a dead owner, which the next who opens a mailbox or a
/// sweep of the container removes; `staged-*` of a dead sender, which the owner removes a minute
/// later, when it looks at everything, or with the directory.
struct MailboxDirectory: Sendable {
  let root: ContainerRoot
  let address: String

  /// The container's directory with all of them.
  static let kind = "mailboxes"
  static let owner = "owner"
  static let stagedPrefix = "staged-"
  static let newPrefix = ".new-"

  /// Relative to the container.
  var relativePath: String { Self.kind + "/" + address }
  var path: String { root.path + "/" + relativePath }

  /// Addresses come from what others have written.
  static func isAddress(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy {
        (48...57).contains($0) || (97...102).contains($0) || $0 == UInt8(ascii: "-")
      }
  }

  // MARK: Making

  /// The owner's: the directory, and the lock that proves that it lives.
  final class Home: Sendable {
    let directory: FileDescriptor
    let status: FileStatus
    let owner: FileDescriptor

    init(_ directory: consuming FileDescriptor, _ owner: consuming FileDescriptor) throws(Errno) {
      status = try directory.status()
      self.directory = directory
      self.owner = owner
    }

    /// Whether somebody has removed the lock's file.
    var isRemoved: Bool {
      do throws(Errno) {
        return try owner.status().links == 0
      } catch {
        return true
      }
    }
  }

  /// Makes the directory with its lock, and only then gives it its name: nobody ever sees a mailbox
  /// unlocked that is not dead for ever.
  func make() throws -> Home {
    for attempt in 0..<interruptionLimit {
      // Whoever sweeps, or removes it all, may be at it.
      if attempt > 0 { pauseThread(.microseconds(100)) }
      let container = try root.refreshed(root.handle()).descriptor.rawValue
      let staged = Self.kind + "/" + Self.newPrefix + Nonce.next()
      do throws(Errno) {
        try root.makeDirectoryIfMissing(Self.kind, at: container)
        guard let home = try stage(staged, at: container) else { continue }
        try publish(staged, at: container)
        return home
      } catch {
        // Its own one, without its lock: somebody has removed that.
        if error == .alreadyExists, try isDead() { try remove() }
        guard error == .noSuchFile || error == .alreadyExists else { throw error }
        try MailboxDirectory.remove(staged, at: container)
      }
    }
    throw Errno.deviceBusy
  }

  private func stage(_ path: String, at container: Int32) throws(Errno) -> Home? {
    try root.makeDirectoryIfMissing(path, at: container)
    let directory = try FileDescriptor.openBeneath(path, at: container, [.pathOnly, .directory])
    let owner = try root.createFile(Self.owner, at: directory.rawValue)
    guard try owner.tryLock(.exclusive), try owner.status().links > 0 else { return nil }
    return try Home(directory, owner)
  }

  private func publish(_ staged: String, at container: Int32) throws(Errno) {
    do throws(Errno) {
      try rename(staged, at: container, to: relativePath, at: container, .keep)
    } catch {
      // This file system has no such rename; a directory with something in it is kept all the same.
      guard error == .invalidArgument else { throw error }
      try rename(staged, at: container, to: relativePath, at: container)
    }
  }

  // MARK: Its end

  /// Whether nobody owns it any more.
  func isDead() throws -> Bool {
    try Self.isDead(relativePath, at: root.handle().descriptor.rawValue)
  }

  private static func isDead(_ path: String, at container: Int32) throws(Errno) -> Bool {
    do throws(Errno) {
      let owner = try FileDescriptor.openBeneath(
        path + "/" + Self.owner, at: container, [.readOnly, .nonBlocking])
      return try owner.tryLock(.shared)
    } catch {
      switch error {
      case .noSuchFile, .notDirectory, .tooManyLinks, .noSuchDevice: return true
      default: throw error
      }
    }
  }

  /// Removes all of it. New entries may come as long as the directory is there: again, then.
  func remove() throws {
    try Self.remove(relativePath, at: root.handle().descriptor.rawValue)
  }

  private static func remove(_ path: String, at container: Int32) throws(Errno) {
    for _ in 0..<interruptionLimit {
      do throws(Errno) {
        guard let entries = try SharedContainer.entries(path, at: container) else { return }
        let directory = try FileDescriptor.openBeneath(
          path, at: container, [.pathOnly, .directory])
        for entry in entries { try discard(entry.name, at: directory.rawValue) }
        return try removeDirectory(path, at: container)
      } catch {
        // Gone when another was faster.
        guard error != .noSuchFile else { return }
        guard error == .directoryNotEmpty else { throw error }
      }
    }
  }

  private static func discard(_ name: FileName, at directory: Int32) throws(Errno) {
    do throws(Errno) {
      try removeFile(name, at: directory)
    } catch {
      guard error == .noSuchFile else { throw error }
    }
  }

  // MARK: Sweeping

  /// The mailboxes of one container that nobody owns any more, relative to the container; those
  /// whose makers died, too.
  static func dead(in root: ContainerRoot) throws -> [String] {
    let container = try root.handle().descriptor.rawValue
    return try (SharedContainer.entries(kind, at: container) ?? []).compactMap { entry in
      let path = kind + "/" + entry.name.text
      let isNew = entry.name.hasPrefix(newPrefix)
      guard isNew || isAddress(entry.name.text), try isDead(path, at: container),
        !isNew || isStale(path, at: container)
      else { return nil }
      return path
    }
  }

  private static func isStale(_ path: String, at container: Int32) -> Bool {
    do throws(Errno) {
      let modified = try fileStatus(path, at: container).modifiedSeconds
      return modified <= realTime().seconds - ContainerInspection.staleAge
    } catch {
      // It has its name by now.
      return false
    }
  }

  static func sweep(_ path: String, in root: ContainerRoot) throws {
    let container = try root.handle().descriptor.rawValue
    guard try isDead(path, at: container) else { return }
    try remove(path, at: container)
  }
}

extension SharedContainer {
  /// Removes the mailboxes of processes that have ended.
  ///
  /// - Complexity: one look at the directory of mailboxes, and open, flock and close for each.
  package func sweepMailboxes() throws {
    let path = root.path + "/" + MailboxDirectory.kind
    try reporting("sweep the mailboxes", path: path) {
      for mailbox in try MailboxDirectory.dead(in: root) {
        try MailboxDirectory.sweep(mailbox, in: root)
      }
    }
  }
}
