import Dispatch
import Synchronization
package import Wormhole
import WormholePropertyLists
import WormholeSystem

/// `mailboxes/<address>/`: messages to one process while it lives.
///
/// ```
/// owner            locked by the mailbox's process for as long as the mailbox exists
/// wire             the socket of small messages: see `MailboxWire`
/// staged-<nonce>   an entry being written; its writer holds a lock on it
/// <entry>          an entry: complete before it was renamed to this name, see `EntryFile`
/// ```
///
/// **Creation.** Only the owner creates the directory, a sender never does; so a post into a
/// mailbox that is gone fails. Posting is create, write, rename.
///
/// **At most once.** Only the owner reads an entry, and unlinks it. Unread entries end with the
/// owner: no other process ever takes them.
///
/// **Death.** A mailbox is dead if its `owner` is unlocked or missing. The lock's file is open for
/// writing, so processes that watch it get IN_CLOSE_WRITE at its end, just before the lock is free;
/// checks open it for reading, and cause no event.
///
/// **What a crash leaves**: `.new-*` of a process that died while creating one; the directory of a
/// dead owner, which the next process that opens a mailbox or a sweep of the container removes; an
/// unlocked `staged-*`, which the owner removes in a complete scan, or with the directory.
package struct MailboxDirectory: Sendable {
  let root: ContainerRoot
  let address: String
  let relativePath: String

  init(root: ContainerRoot, address: String) {
    self.root = root
    self.address = address
    relativePath = ContainerFormat.mailboxes + "/" + address
  }

  static let owner = "owner"
  static let stagedPrefix = "staged-"
  static let newPrefix = ".new-"

  var path: String { root.path + "/" + relativePath }

  // MARK: Making

  /// The owner's directory, with the lock that proves that the owner lives.
  final class LockedDirectory: Sendable {
    let directory: FileDescriptor
    let status: FileStatus
    let owner: FileDescriptor
    /// Nil where there can be none: then all messages come as files.
    let wire: MailboxWire?

    init(
      _ directory: consuming FileDescriptor, _ owner: consuming FileDescriptor, _ wire: MailboxWire?
    ) throws(Errno) {
      status = try directory.status()
      self.directory = directory
      self.owner = owner
      self.wire = wire
    }
  }

  /// Creates the directory with its lock, and only then gives it its name: so an unlocked mailbox
  /// is always dead for good.
  func make() throws -> LockedDirectory {
    for attempt in 0..<renameRaceLimit {
      // A sweeper, or a process that removes everything, may be at work.
      if attempt > 0 { pauseThread(.microseconds(100)) }
      let handle = try root.refreshed(root.handle())
      let container = handle.descriptor.rawValue
      let staged = MailboxDirectory(root: root, address: Self.newPrefix + Nonce.next())
      do throws(Errno) {
        try root.makeDirectoryIfMissing(ContainerFormat.mailboxes, at: container)
        guard let new = try staged.make(at: container) else { continue }
        try rename(staged.relativePath, at: container, to: relativePath, at: container, .keep)
        return new
      } catch {
        // Its own directory without the lock's file, which another program has removed.
        if error == .alreadyExists, try isDead() { try remove() }
        guard error == .noSuchFile || error == .alreadyExists else { throw error }
        try staged.remove()
      }
    }
    throw Errno.deviceBusy
  }

  private func make(at container: Int32) throws(Errno) -> LockedDirectory? {
    try root.makeDirectoryIfMissing(relativePath, at: container)
    let directory = try FileDescriptor.openBeneath(
      relativePath, at: container, [.pathOnly, .directory])
    let owner = try root.access.createFile(Self.owner, at: directory.rawValue)
    guard try owner.tryLock(.exclusive), try owner.status().links > 0 else { return nil }
    // Without it messages go as files, so the reason does not matter.
    let wire = try? MailboxWire(in: directory.rawValue, root.access)
    return try LockedDirectory(directory, owner, wire)
  }

  // MARK: Its end

  /// Opens the lock's file; nil if there is none.
  func openOwner() throws -> FileDescriptor? {
    let handle = try root.handle()
    return try ifPresent(openOwner(at: handle.descriptor.rawValue))
  }

  private func openOwner(at container: Int32) throws(Errno) -> FileDescriptor {
    try .openBeneath(
      relativePath + "/" + Self.owner, at: container, [.readOnly, .nonBlocking])
  }

  func isDead() throws -> Bool {
    let handle = try root.handle()
    return try tolerating(
      [.noSuchFile, .notDirectory, .tooManyLinks, .noSuchDevice],
      openOwner(at: handle.descriptor.rawValue).tryLock(.shared)) ?? true
  }

  /// Removes all of it, repeatedly: new entries may arrive as long as the directory exists.
  func remove() throws {
    let handle = try root.handle()
    let container = handle.descriptor.rawValue
    for _ in 0..<renameRaceLimit {
      do throws(Errno) {
        guard let entries = try ContainerRoot.entries(relativePath, at: container) else { return }
        let directory = try FileDescriptor.openBeneath(
          relativePath, at: container, [.pathOnly, .directory])
        for entry in entries { try removeIfPresent(entry.name, at: directory.rawValue) }
        return try removeDirectory(relativePath, at: container)
      } catch {
        // Gone, because another process was faster.
        guard error != .noSuchFile else { return }
        guard error == .directoryNotEmpty else { throw error }
      }
    }
  }

  // MARK: Sweeping

  /// Returns the mailboxes of one container that no longer have an owner, as paths in the
  /// container; including those whose creators died.
  package static func dead(in root: ContainerRoot) throws -> [String] {
    let handle = try root.handle()
    let container = handle.descriptor.rawValue
    return try (ContainerRoot.entries(ContainerFormat.mailboxes, at: container) ?? []).compactMap {
      entry in
      let mailbox = MailboxDirectory(root: root, address: entry.name.text)
      let isNew = entry.name.hasPrefix(newPrefix)
      // A new mailbox that cannot be examined has its final name by now.
      let isAbandoned = try? !isNew || fileStatus(mailbox.relativePath, at: container).isStale
      guard isNew || MailboxAddress.isOne(mailbox.address), try mailbox.isDead(),
        isAbandoned == true
      else { return nil }
      return mailbox.relativePath
    }
  }

  package static func sweep(_ path: String, in root: ContainerRoot) throws {
    let mailbox = MailboxDirectory(
      root: root, address: String(path.dropFirst(ContainerFormat.mailboxes.count + 1)))
    if try mailbox.isDead() { try mailbox.remove() }
  }
}

extension SharedContainer {
  /// Removes the mailboxes of processes that have ended. On etcd nothing of them remains.
  ///
  /// - Complexity: one listing of the directory of mailboxes, and open, flock and close for each.
  package func sweepMailboxes() throws {
    try reporting("sweep the mailboxes", path: root.path + "/" + ContainerFormat.mailboxes) {
      for mailbox in try MailboxDirectory.dead(in: root) {
        try MailboxDirectory.sweep(mailbox, in: root)
      }
    }
  }
}

extension DirectoryEngine: CallingEngine {
  package func makeMailbox(
    at address: String, _ deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any Mailbox {
    try DirectoryMailbox(MailboxDirectory(root: root, address: address), deliver: deliver)
  }

  package func mailboxWriter(to address: String, _ admission: Admission) -> any MailboxWriter {
    DirectoryMailboxWriter(MailboxDirectory(root: root, address: address), admission)
  }

  package func observeEnd(
    ofMailbox address: String, _ ended: @escaping @Sendable () -> Void
  ) throws -> ObservationToken? {
    let place = MailboxDirectory(root: root, address: address)
    let queue = Blocking.queue()
    let looks = FollowUpChecks()
    // Not on the monitor's thread or the timers' thread, because those must not wait for files.
    looks.use { [weak looks] in
      queue.async { [looks] in
        // After an error, such as a lack of descriptors, the next check reports it.
        guard (try? place.isDead()) == true, looks?.end() == true else { return }
        ended()
      }
    }
    // Unlinking changes the link count, which IN_ATTRIB reports.
    guard let owner = try place.openOwner() else { return nil }
    let watch = ChangeMonitor.shared.watchOpen(
      owner, [.closedAfterWriting, .attributes, .selfDeleted]
    ) { _ in looks.begin() }
    let observation = ObservationToken(watch: watch, delivery: looks)
    // First the watch, then the check.
    return try place.isDead() ? nil : observation
  }
}
