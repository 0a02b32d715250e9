package import SystemCalls

/// The surroundings of a lease's directory: the modes of new entries, and the place for foreign
/// ones. A container is one (`ContainerRoot`); so is the hidden directory beside a coordinated
/// file.
package protocol LeaseHome: Sendable {
  /// The layout of its leases.
  var layout: LeaseLayout { get }

  /// Creates a directory; succeeds if it exists.
  ///
  /// - Parameter staging: The place where it is created first, if it may be visible only with its
  ///   full mode.
  func makeDirectoryIfMissing(
    _ path: String, at directory: Int32, staging: String?
  ) throws(Errno)

  /// Creates a file for writing; fails if the name is taken.
  func createFile(_ path: String, at directory: Int32) throws(Errno) -> FileDescriptor

  /// Moves a foreign entry of a lease aside, in one step.
  func setAside(_ name: FileName, at source: Int32) throws(Errno)

  /// Moves a directory aside, in one step, but never a file.
  func setAsideDirectory(_ name: String, at source: Int32) throws(Errno)

  /// Gives a file that is about to be published its version.
  func stamp(_ file: borrowing FileDescriptor) throws(Errno) -> Stamp
}

extension ContainerRoot: LeaseHome {
  package var layout: LeaseLayout { .lasting }

  package func setAside(_ name: FileName, at source: Int32) throws(Errno) {
    try Quarantine.take(name, at: source, root: self)
  }

  package func setAsideDirectory(_ name: String, at source: Int32) throws(Errno) {
    try Quarantine.takeDirectory(name, at: source, root: self)
  }

  package func stamp(_ file: borrowing FileDescriptor) throws(Errno) -> Stamp {
    try Stamp.put(on: file, in: self)
  }
}

/// The places of a lease's parts in its site, and the entries that a holder leaves there.
package struct LeaseLayout: Sendable {
  /// The directory of the lease, seen from the site.
  package let lease: String
  /// The same, as a prefix of a name.
  let prefix: String
  /// The site, seen from `held`: ".." is the kernel's own record of the parent, so no link can lead
  /// elsewhere.
  package let fromHeld: String
  package let held: String
  let taken: String
  /// Whether the site is created for one change and removed after it, so that every file in it
  /// costs the creation and the removal of an inode.
  ///
  /// Then there is no `clean`, and a holder looks for the leftovers of takeovers each time (rule
  /// 5). And its first entry declares the holder, not a file from before. A takeover before that is
  /// found in the same way as for a holder that was stopped between locking and declaring (rule 3;
  /// Tests/Models/lease.pml, PASSING).
  let isPassing: Bool

  /// The layout for a value, whose site stays.
  package static let lasting = LeaseLayout(
    lease: LeaseSite.lease, prefix: LeaseSite.lease + "/", fromHeld: LeaseSite.fromHeld,
    held: LeaseSite.held, taken: LeaseSite.taken, isPassing: false)

  /// The layout for a coordinated file: the lease lies in the site itself.
  package static let passing = LeaseLayout(
    lease: ".", prefix: "", fromHeld: "../", held: "held", taken: "taken.plist", isPassing: true)
}
