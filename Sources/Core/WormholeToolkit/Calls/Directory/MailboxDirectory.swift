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

    /// Whether the lock's file was removed.
    var isRemoved: Bool {
      // A file that cannot be examined is created again.
      (try? owner.status().links == 0) ?? true
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
        guard let entries = try SharedContainer.entries(relativePath, at: container) else { return }
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
    return try (SharedContainer.entries(ContainerFormat.mailboxes, at: container) ?? []).compactMap
    { entry in
      let mailbox = MailboxDirectory(root: root, address: entry.name.text)
      let isNew = entry.name.hasPrefix(newPrefix)
      // A new mailbox that cannot be examined has its final name by now.
      let isAbandoned = try? !isNew || fileStatus(mailbox.relativePath, at: container).isStale
      guard isNew || MailboxSender.isAddress(mailbox.address), try mailbox.isDead(),
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

extension DirectoryEngine: CallingEngine {
  package func makeMailbox(
    at address: String, _ deliver: @escaping @Sendable (PropertyListValue) -> Void
  ) throws -> any Mailbox {
    try DirectoryMailbox(MailboxDirectory(root: root, address: address), deliver: deliver)
  }

  package func mailboxWriter(to address: String, _ admission: Admission) -> any MailboxWriter {
    DirectoryMailboxWriter(MailboxDirectory(root: root, address: address), admission)
  }

  package func sweepMailboxes() throws {
    try reporting("sweep the mailboxes", path: root.path + "/" + ContainerFormat.mailboxes) {
      for mailbox in try MailboxDirectory.dead(in: root) {
        try MailboxDirectory.sweep(mailbox, in: root)
      }
    }
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

private final class DirectoryMailboxWriter: MailboxWriter {
  private struct State {
    /// The order of the last entry.
    var last: UInt64 = 0
    /// The order of the last one that was stored as a file.
    var lastFile: UInt64 = 0
    var admission: Admission
    var wire: MailboxWire.Outlet?
    /// The boot time from which the wire may be tried.
    var wireTime: UInt64 = 0

    mutating func nextOrder(now: UInt64) -> UInt64 {
      last = EntryFile.order(after: last, now: now)
      return last
    }
  }

  private let place: MailboxDirectory
  private let nonce = Nonce.nextNumber()
  private let sender: String
  private let state: Mutex<State>

  var path: String { place.path }

  init(_ place: MailboxDirectory, _ admission: Admission) {
    self.place = place
    sender = Nonce.text(nonce)
    state = Mutex(State(admission: admission))
  }

  func post(
    _ bytes: [UInt8], until deadline: ContinuousClock.Instant?
  ) throws -> MailboxSender.Outcome {
    do {
      let handle = try place.root.handle()
      return try withExtendedLifetime(handle) {
        let container = handle.descriptor.rawValue
        if isSent(bytes, in: handle) { return .posted }
        guard try admits(bytes.count, at: container) else { return .full }
        try store(bytes, at: container)
        return .posted
      }
    } catch let error as Errno where error == .noSuchFile {
      return .gone
    }
  }

  /// How long messages go as files after the receiver fell behind, in nanoseconds.
  private static let pause: UInt64 = 2_000_000
  /// The same after there was no socket, or no process behind it.
  private static let longPause: UInt64 = 1_000_000_000

  /// Sends a small message over the wire.
  ///
  /// - Returns: False if it has to go as a file, whatever the reason.
  private func isSent(_ bytes: [UInt8], in container: ContainerRoot.Handle) -> Bool {
    guard bytes.count <= MailboxWire.maximumBytes else { return false }
    let now = bootTimeNanoseconds()
    let (mayTry, known) = state.withLock { (now >= $0.wireTime, $0.wire) }
    guard mayTry else { return false }
    do throws(Errno) {
      let wire: MailboxWire.Outlet
      if let known {
        wire = known
      } else {
        wire = try MailboxWire.Outlet(to: place.relativePath, in: container)
        state.withLock { $0.wire = wire }
      }
      guard !wire.isObserved else { return false }
      let message = state.withLock { state in
        MailboxWire.Message(
          sender: nonce, order: state.nextOrder(now: now), fileBefore: state.lastFile,
          content: bytes)
      }
      try wire.send(message)
      return true
    } catch {
      let isBehind = error == .wouldBlock
      state.withLock { state in
        state.wireTime = now + (isBehind ? Self.pause : Self.longPause)
        if !isBehind { state.wire = nil }
      }
      return false
    }
  }

  private func store(_ bytes: [UInt8], at container: Int32) throws(Errno) {
    let staging = place.relativePath + "/" + MailboxDirectory.stagedPrefix
    try place.root.store(bytes, staging: staging, at: container) { staged, _ throws(Errno) in
      let entry = state.withLock { state in
        EntryFile(
          order: state.nextOrder(now: bootTimeNanoseconds()), sender: sender, count: 1,
          bytes: bytes.count)
      }
      try rename(staged, at: container, to: place.relativePath + "/" + entry.text, at: container)
      state.withLock { state in
        state.lastFile = max(state.lastFile, entry.order)
        state.admission.noteStored(entry)
      }
    }
  }

  private func admits(_ size: Int, at container: Int32) throws(Errno) -> Bool {
    if state.withLock({ $0.admission.allows(1, size) }) { return true }
    let waiting = try SharedContainer.entries(place.relativePath, at: container)?
      .compactMap { EntryFile(bytes: $0.name.bytes) }
    return state.withLock { $0.admission.note(waiting: waiting ?? [], for: 1, size) }
  }
}
