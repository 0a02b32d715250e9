import Synchronization
package import SystemCalls

/// The place of one lease: the directory of a value, in which `lease/` lies.
///
/// ```
/// <directory>/value.plist           what the lease protects; published in one rename
/// <directory>/lease/held/           the lease; holding it is flock(2) on this directory
/// <directory>/lease/held/clean      every broken-* that there was is gone (rule 5)
/// <directory>/lease/held/x-…, s-…   a holder's declaration; x holds what it will publish (rule 2)
/// <directory>/lease/broken-<nonce>/ a lease that was taken away, being removed (rule 4)
/// <directory>/lease/prepared-…      large or durable content on its way; its writer has it locked
/// <directory>/lease/waiting-…       a writer that waits has it locked; new readers queue behind it
/// <directory>/lease/taken.plist     who was last to take the lease away, and from whom
/// ```
package final class LeaseSite: Sendable {
  let home: any LeaseHome
  let layout: LeaseLayout
  private let opened: Mutex<Opened>
  /// For sentences only, so it is put together only for one.
  package var path: String { describe() }
  private let describe: @Sendable () -> String
  let fault: LeaseFault?

  package static let lease = "lease"
  static let held = "lease/held"
  static let taken = "lease/taken.plist"
  package static let brokenPrefix = "broken-"
  static let preparedPrefix = "prepared-"
  static let waitingPrefix = "waiting-"
  static let cleanMark = "clean"

  private struct Opened {
    /// Not held on to: its descriptor is the lock, and ends with the request or the lease.
    weak var held: HeldDirectory?
    var directory: SharedDescriptor?
    /// Whether this process has just made the site, and nobody has the lease yet, most likely.
    var isNew = false
  }

  static let fromHeld = "../../"

  /// A site that is known by its lease, which is all that an uncontended change needs. As long as
  /// `directory()` has not been called, somebody else has to keep the lease open.
  init(
    held: HeldDirectory, home: any LeaseHome,
    path: @autoclosure @escaping @Sendable () -> String, fault: LeaseFault? = nil
  ) {
    opened = Mutex(Opened(held: held))
    layout = .lasting
    self.home = home
    describe = path
    self.fault = fault
  }

  package init(
    directory: consuming FileDescriptor, home: any LeaseHome,
    path: @autoclosure @escaping @Sendable () -> String, fault: LeaseFault? = nil
  ) {
    opened = Mutex(Opened(directory: SharedDescriptor(directory)))
    layout = .lasting
    self.home = home
    describe = path
    self.fault = fault
  }

  /// - Parameters:
  ///   - directory: may have other users.
  ///   - isNew: whether it was made a moment ago; only decides what is tried first.
  package init(
    directory: SharedDescriptor, home: any LeaseHome, layout: LeaseLayout, isNew: Bool,
    path: @autoclosure @escaping @Sendable () -> String
  ) {
    opened = Mutex(Opened(directory: directory, isNew: isNew))
    self.home = home
    self.layout = layout
    describe = path
    fault = nil
  }

  /// The directory, named but not opened for reading (`O_PATH`): opening it wakes no watcher. The
  /// descriptor is valid as long as the site.
  package func directory() throws(Errno) -> Int32 {
    let (known, held) = opened.withLock { ($0.directory, $0.held) }
    if let known { return known.descriptor.rawValue }
    guard let held else { throw .staleHandle }
    let found = SharedDescriptor(
      try FileDescriptor.open(
        layout.fromHeld, at: held.descriptor.rawValue, [.pathOnly, .directory]))
    // Whoever was first, so that a descriptor that has been handed out stays open.
    return opened.withLock { opened in
      let first = opened.directory ?? found
      opened.directory = first
      return first.descriptor.rawValue
    }
  }

  /// Opens `lease/held`, and makes it where it is missing.
  func openHeld() throws(Errno) -> HeldDirectory {
    var isMissing = opened.withLock { opened in
      defer { opened.isNew = false }
      return opened.isNew
    }
    for _ in 0..<interruptionLimit {
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
        // Staged as a lease that was taken away: swept like one if this is its end.
        try home.makeDirectoryIfMissing(
          layout.held, at: try directory(), staging: layout.prefix + Self.brokenPrefix)
      } catch {
        guard error == .noSuchFile else { throw error }
        try makeLeaseDirectory()
      }
    }
    // Somebody moves the directory away as fast as we make it.
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

  /// Whether the path still names this directory (rule 1).
  ///
  /// An early exit only: the model shows that nothing is lost without it (Tests/Models/lease.pml,
  /// DROP_INODE_CHECK), because a holder of a removed directory can make no entry in it, and one of
  /// a directory that is about to be removed publishes before its successor may act.
  func names(_ held: HeldDirectory) throws(Errno) -> Bool {
    do throws(Errno) {
      return try fileStatus(layout.held, at: try directory()).isSameFile(as: held.status())
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  func openLeaseDirectory() throws(Errno) -> FileDescriptor {
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

  /// A removed directory has no links any more: whoever holds it has lost the lease (rule 4).
  func isRemoved() throws(Errno) -> Bool { try descriptor.status().links == 0 }
}

/// What the torture program breaks on purpose, to show that it would notice.
package enum LeaseFault: Sendable {
  /// The staged file is made and renamed by path instead of through the holder's descriptor, so it
  /// may land in a successor's lease: against rule 2.
  case stagingByPath
  /// A new holder acts before the leases that were taken away are removed: against rule 5.
  case actingBeforeRemoval
  /// A consumer of a queue follows its directory to its successor, instead of using it by the name
  /// that it had.
  case consumingThroughOldDescriptor
}
