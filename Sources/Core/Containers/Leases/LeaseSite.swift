import Synchronization
package import SystemCalls

/// The place of one lease: the directory of a value, which contains `lease/`.
///
/// ```
/// <directory>/value.plist           what the lease protects; published in one rename
/// <directory>/lease/held/           the lease; holding it is flock(2) on this directory
/// <directory>/lease/held/clean      every broken-* that there was is gone (rule 5)
/// <directory>/lease/held/x-…, s-…   a holder's declaration; x holds what it will publish (rule 2)
/// <directory>/lease/broken-<nonce>/ a lease that was taken away, being removed (rule 4)
/// <directory>/lease/prepared-…      large or durable content on its way; its writer has it locked
/// <directory>/lease/waiting-…       a writer that waits has it locked; new readers queue behind it
/// <directory>/lease/taken.plist     who last took the lease away, and from whom
/// ```
package final class LeaseSite: Sendable {
  package let home: any LeaseHome
  package let layout: LeaseLayout
  private let opened: Mutex<Opened>
  /// For messages only, so it is composed only for one.
  package var path: String { describe() }
  private let describe: @Sendable () -> String

  package static let lease = "lease"
  static let held = "lease/held"
  static let taken = "lease/taken.plist"
  package static let brokenPrefix = "broken-"
  package static let preparedPrefix = "prepared-"
  package static let waitingPrefix = "waiting-"
  package static let cleanMark = "clean"

  private struct Opened {
    /// A weak reference, because its descriptor is the lock, and ends with the request or the
    /// lease.
    weak var held: HeldDirectory?
    var directory: SharedDescriptor?
    /// Whether this process has just created the site, so that most likely there is no holder yet.
    var isNew = false
  }

  static let fromHeld = "../../"

  /// Creates a site that is known by its lease, which is all that an uncontended change needs.
  /// Until `directory()` is called, the caller has to keep the lease open.
  init(
    held: HeldDirectory, home: any LeaseHome,
    path: @autoclosure @escaping @Sendable () -> String
  ) {
    opened = Mutex(Opened(held: held))
    self.home = home
    layout = home.layout
    describe = path
  }

  /// - Parameters:
  ///   - directory: May have other users.
  ///   - isNew: Whether it was created a moment ago; only decides the first attempt.
  package init(
    directory: SharedDescriptor, home: any LeaseHome, isNew: Bool = false,
    path: @autoclosure @escaping @Sendable () -> String
  ) {
    opened = Mutex(Opened(directory: directory, isNew: isNew))
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

  /// Opens `lease/held`, and creates it if it is missing.
  func openHeld() throws(Errno) -> HeldDirectory {
    var isMissing = opened.withLock { opened in
      defer { opened.isNew = false }
      return opened.isNew
    }
    for _ in 0..<renameRaceLimit {
      do throws(Errno) {
        guard !isMissing else { throw .noSuchFile }
        let descriptor = try FileDescriptor.openBeneath(
          layout.held, at: try directory(), [.readOnly, .directory])
        return HeldDirectory(descriptor)
      } catch {
        guard error == .noSuchFile else { throw error }
        isMissing = false
      }
      do throws(Errno) {
        // Staged as a lease that was taken over, so that it is swept like one after a crash.
        try home.makeDirectoryIfMissing(
          layout.held, at: try directory(), staging: layout.prefix + Self.brokenPrefix)
      } catch {
        guard error == .noSuchFile else { throw error }
        try makeLeaseDirectory()
      }
    }
    // Another process moves the directory away as fast as it is created.
    throw .staleHandle
  }

  private func makeLeaseDirectory() throws(Errno) {
    guard !layout.isPassing else { throw .staleHandle }
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

  package func openLeaseDirectory() throws(Errno) -> FileDescriptor {
    try FileDescriptor.openBeneath(layout.lease, at: try directory(), [.readOnly, .directory])
  }
}

/// One generation of a lease: the directory that was at `lease/held` when it was opened.
package final class HeldDirectory: Sendable {
  package let descriptor: FileDescriptor

  init(_ descriptor: consuming FileDescriptor) {
    self.descriptor = descriptor
  }

  func status() throws(Errno) -> FileStatus { try descriptor.status() }

  /// A removed directory has no links any more, and its holder has lost the lease (rule 4).
  package func isRemoved() throws(Errno) -> Bool { try descriptor.status().links == 0 }
}
