import Synchronization
package import WormholeSystem

/// The place of one lease: the directory of a value, which contains `lease/`.
///
/// ```
/// <directory>/value.plist           what the lease protects; published in one rename
/// <directory>/lease/held/           the lease; holding it is flock(2) on this directory
/// <directory>/lease/held/clean      every broken-* that there was is gone (rule 5)
/// <directory>/lease/held/x-…        the holder's declaration, and what it will publish (rule 2)
/// <directory>/lease/broken-<nonce>/ a lease that was taken over, being removed (rule 4)
/// <directory>/lease/prepared-…      large or durable content on its way; its writer has it locked
/// <directory>/lease/transaction     a change of this value and others; see `Transaction`
/// <directory>/lease/taken.plist     who last took the lease away, and from whom
/// ```
package final class LeaseSite: Sendable {
  package let home: any LeaseHome
  package let layout: LeaseLayout
  private let opened: Mutex<Opened>
  /// Used only in messages, so it is composed only for them.
  package var path: String { describe() }
  private let describe: @Sendable () -> String
  package var containerPath: String? { home.container?.path }

  package static let lease = "lease"
  package static let held = "lease/held"
  /// The file that the lease of a value protects, if the value is not a notification's state or a role.
  package static let value = "value.plist"
  /// The process that last took the lease over.
  static let note = "taken.plist"
  package static let taken = "lease/" + note
  package static let transaction = "transaction"
  package static let brokenPrefix = "broken-"
  package static let preparedPrefix = "prepared-"
  static let cleanName: StaticString = "clean"
  package static let cleanMark = "\(cleanName)"
  /// An empty directory that a process has left in the lease of a transient site, for its next change. The
  /// name declares no holder, because the lease may be another process's by now.
  package static let spare = "spare"

  private struct Opened {
    /// The open lease of the site. Its descriptor is the lock, so the site releases it when the
    /// lease ends, or when the request gives it up.
    var held: HeldDirectory?
    /// Whether the request has not taken it yet.
    var isUnused = true
    var directory: SharedDescriptor?
    /// Whether this process has just created the site, so that most likely there is no holder yet.
    var isNew = false
  }

  /// Creates a site from its directory, or from its lease, which is all that an uncontended change
  /// needs.
  ///
  /// - Parameters:
  ///   - directory: May have other users.
  ///   - held: The lease, opened a moment ago.
  ///   - isNew: A hint: the site was created a moment ago. It decides only the first attempt.
  package init(
    directory: SharedDescriptor? = nil, held: HeldDirectory? = nil, home: any LeaseHome,
    isNew: Bool = false, path: @autoclosure @escaping @Sendable () -> String
  ) {
    opened = Mutex(Opened(held: held, directory: directory, isNew: isNew))
    self.home = home
    layout = home.layout
    describe = path
  }

  /// Returns the directory, referred to but not opened for reading (`O_PATH`): opening it wakes no
  /// watcher. The descriptor is valid as long as the site.
  package func directory() throws(Errno) -> Int32 {
    let (known, held) = opened.withLock { ($0.directory, $0.held) }
    if let known { return known.descriptor.rawValue }
    guard let held else { throw .staleHandle }
    let found = SharedDescriptor(
      try FileDescriptor.open(
        layout.fromHeld, at: held.descriptor.rawValue, [.pathOnly, .directory]))
    // The first one wins, so that a returned descriptor stays open.
    return opened.withLock { opened in
      let first = opened.directory ?? found
      opened.directory = first
      return first.descriptor.rawValue
    }
  }

  /// Forgets the open lease of the site.
  func releaseLock() { opened.withLock { $0.held = nil } }

  /// Opens `lease/held`, and creates it if it is missing.
  func openHeld() throws(Errno) -> HeldDirectory {
    let (first, isNew) = opened.withLock { opened in
      defer { (opened.isUnused, opened.isNew) = (false, false) }
      return (opened.isUnused ? opened.held : nil, opened.isNew)
    }
    if let first { return first }
    var isMissing = isNew
    for _ in 0..<renameRaceLimit {
      if !isMissing,
        let descriptor = try ifPresent(
          FileDescriptor.openBeneath(layout.held, at: directory(), [.readOnly, .directory]))
      {
        return HeldDirectory(descriptor)
      }
      isMissing = false
      // Staged as a lease that was taken over, so that it is swept like one after a crash.
      let staging = layout.isTemporary ? nil : Self.lease + "/" + Self.brokenPrefix
      let made: Void? = try ifPresent(
        home.makeDirectoryIfMissing(layout.held, at: directory(), staging: staging))
      if made == nil { try makeLeaseDirectory() }
    }
    // Another process moves the directory away as fast as it is created.
    throw .staleHandle
  }

  private func makeLeaseDirectory() throws(Errno) {
    guard !layout.isTemporary else { throw .staleHandle }
    do throws(Errno) {
      try home.makeDirectoryIfMissing(Self.lease, at: try directory(), staging: nil)
    } catch {
      // The whole directory was removed: its user has to begin with another site.
      throw error == .noSuchFile ? .staleHandle : error
    }
  }

  /// Returns whether the path still names this directory (rule 1).
  ///
  /// This is only an early exit: the model shows that nothing is lost without it
  /// (Tests/Models/lease.pml, DROP_INODE_CHECK), because a holder of a removed directory can create
  /// no entry in it, and one of a directory that is about to be removed publishes before its
  /// successor may act.
  func names(_ held: HeldDirectory) throws(Errno) -> Bool {
    return try ifPresent(fileStatus(layout.held, at: directory()).isSameFile(as: held.status()))
      ?? false
  }

  /// Returns what an fsync of the site's directory puts on the disk.
  package func commitScope() throws(Errno) -> CommitScope {
    let device =
      if let held = opened.withLock(\.held) { try held.status().device } else {
        try fileStatus(".", at: directory()).device
      }
    return try home.commitScope(on: device)
  }

  /// Returns whether one fsync, the last one, puts all of a durable change on the disk. Then its content
  /// is only written before it gets its name, and the name comes to the disk after the content.
  func commitsTogether() throws(Errno) -> Bool { try commitScope().isEverything }

  /// Flushes durable content to the disk, as far as that has to happen before it gets its name.
  func synchronizeContent(_ file: borrowing FileDescriptor) throws(Errno) {
    if try commitsTogether() { try file.writeBack() } else { try file.synchronize() }
  }

  /// Notes that every lease that was taken over is gone.
  func markClean(_ held: HeldDirectory) throws(Errno) {
    // Another program may have created it; without room the next holder looks for remains, too.
    _ = try tolerating(
      [.alreadyExists, .noSpace, .diskQuotaExceeded],
      home.access.createFile(Self.cleanMark, at: held.descriptor.rawValue))
  }

  package func openLeaseDirectory() throws(Errno) -> FileDescriptor {
    try FileDescriptor.openBeneath(Self.lease, at: try directory(), [.readOnly, .directory])
  }
}

/// One generation of a lease: the directory that was at `lease/held` when it was opened.
package final class HeldDirectory: Sendable {
  package let descriptor: FileDescriptor

  package init(_ descriptor: consuming FileDescriptor) {
    self.descriptor = descriptor
  }

  package func status() throws(Errno) -> FileStatus { try descriptor.status() }

  /// Changes its times, so that a process that has kept the lease does not take it again unseen: on tmpfs
  /// neither a removal nor a creation right after it has to change them. Another user's is not kept.
  package func touch() throws(Errno) {
    let now = realTime()
    _ = try tolerating(
      [.notPermitted], descriptor.setModified(seconds: now.seconds, nanoseconds: now.nanoseconds))
  }

  /// Lets the holder know that a process waits, so that it does not keep the lease open when it ends. The
  /// sticky bit means nothing else in a directory of one user.
  func markWaitedFor() throws(Errno) {
    let mode = try status().permissions
    guard mode & Self.waitedFor == 0 else { return }
    // The superuser's, which this user may not mark.
    _ = try tolerating([.notPermitted], descriptor.setPermissions(mode | Self.waitedFor))
  }

  static let waitedFor: UInt32 = 0o1000

  /// A removed directory has no links, and its holder has lost the lease (rule 4).
  package func isRemoved() throws(Errno) -> Bool { try descriptor.status().links == 0 }
}

/// The surroundings of a lease's directory: the modes of new entries, and the place for foreign
/// ones. A container is one (`ContainerRoot`); so is the hidden directory beside a coordinated
/// file.
package protocol LeaseHome: Sendable {
  var layout: LeaseLayout { get }

  /// The modes of new files.
  var access: ContainerAccess { get }

  /// As `ContainerAccess.makeDirectoryIfMissing`.
  func makeDirectoryIfMissing(_ path: String, at directory: Int32, staging: String?) throws(Errno)

  /// Moves a foreign entry aside, in one step; see `Quarantine.take`.
  func setAside(_ name: FileName, at source: Int32) throws(Errno)

  /// Returns what an fsync of a directory inside puts on the disk, by the directory's device.
  func commitScope(on device: UInt64) throws(Errno) -> CommitScope

  /// Gives a file that is about to be published its version.
  func stamp(_ file: borrowing FileDescriptor) throws(Errno) -> Stamp

  /// Finishes or undoes the part of a transaction that a holder before this one has left.
  func settle(_ lease: Lease) throws

  /// Returns the holder that an entry of the lease declares.
  func declaration(_ entry: FileName) -> LeaseDeclaration?

  /// Decides whether a lease may be taken over from an overdue holder, and ends what would otherwise go on
  /// under it.
  ///
  /// - Parameter holder: Nil for one that has declared nothing, or has ended.
  func mayTakeOver(_ held: HeldDirectory, from holder: LeaseDeclaration?) throws(Errno) -> Bool

  var container: ContainerRoot? { get }
}

extension LeaseHome {
  /// Only a value takes part in transactions.
  package func settle(_ lease: Lease) throws {}

  package func declaration(_ entry: FileName) -> LeaseDeclaration? { LeaseDeclaration(entry) }

  package func mayTakeOver(
    _ held: HeldDirectory, from holder: LeaseDeclaration?
  ) throws(Errno) -> Bool { true }

  package var container: ContainerRoot? { nil }

  /// Only sites in a container are asked often.
  package func commitScope(on device: UInt64) throws(Errno) -> CommitScope { .content }
}

extension ContainerRoot: LeaseHome {
  package var layout: LeaseLayout { .lasting }

  package var container: ContainerRoot? { self }

  package func setAside(_ name: FileName, at source: Int32) throws(Errno) {
    try Quarantine.take(name, at: source, root: self)
  }

  package func stamp(_ file: borrowing FileDescriptor) throws(Errno) -> Stamp {
    try Stamp.put(on: file, lastHandle.keepsNanoseconds)
  }
}

/// The places of a lease's parts in its site, and the entries that a holder leaves there.
package enum LeaseLayout: Sendable {
  /// For a value, whose site stays.
  case lasting
  /// For a coordinated file: the site is created for one change and removed after it, so that every
  /// file in it costs the creation and the removal of an inode. The lease is in the site itself.
  ///
  /// The holder's own directory in the lease declares it. A takeover puts that aside and removes the
  /// empty lease, so no older lease is ever beside it, and there is no `clean`, `broken-` or
  /// `taken.plist` (Tests/Models/files.pml).
  case passing

  var isTemporary: Bool { self == .passing }

  /// The site, seen from `held`: ".." is the kernel's own record of the parent, so no link can lead
  /// elsewhere.
  package var fromHeld: String { isTemporary ? "../" : "../../" }

  /// An entry of the site, seen from `held`.
  package func fromHeld(_ name: String) -> String {
    // Joining two names takes more instructions than the call that gets them.
    !isTemporary && name == LeaseSite.value ? "../../value.plist" : fromHeld + name
  }

  package var held: String { isTemporary ? "held" : LeaseSite.held }
}
