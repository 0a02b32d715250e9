import Synchronization
import Wormhole
import WormholeSystem

/// The hidden directory beside an item while a process coordinates it: it exists as long as it has
/// entries, and an item that no process coordinates has none.
///
/// ```
/// <directory>/<name>                              the item; published in one rename
/// <directory>/.coordination-<name>/               made by the first process, removed by the last
///   held/                                         the lease: a process that changes the item has it
///                                                 locked for as long as it does
///   held/<kind>-<declaration>/                    its entry (`ItemEntry`); the private copy is inside
///   trash-<nonce>-<declaration>/                  put aside by a process, to be removed by any
/// ```
///
/// A crash's leftovers are unlocked, so the next process recognizes and removes them.
package final class ItemSite: Sendable {
  let location: ItemPath
  /// The place where a process looks for it.
  let path: String
  let lease: LeaseSite
  let home: ItemHome
  private let directory: SharedDescriptor
  private let status: FileStatus
  private let keptSite = Mutex<KeptSite?>(nil)

  package static let prefix = ".coordination-"
  static func isSite(_ name: FileName) -> Bool { name.hasPrefix(prefix) }
  /// The name of the item, and its path seen from the site.
  let itemName, item: String

  var descriptor: Int32 { directory.descriptor.rawValue }
  var identity: FileStatus.Identity { status.identity }
  /// The device of the directory that contains the item.
  var device: UInt64 { status.device }

  private init(
    _ location: ItemPath, _ directory: consuming FileDescriptor, at path: String, isNew: Bool
  ) throws {
    status = try directory.status()
    let access = try Self.check(status, location, at: path)
    self.location = location
    itemName = location.name.text
    item = "../" + itemName
    self.path = path
    let directory = SharedDescriptor(directory)
    self.directory = directory
    home = ItemHome(directory, of: location, access)
    lease = LeaseSite(directory: directory, home: home, isNew: isNew, path: location.text)
  }

  /// The name of an item's site: readable for people as long as it fits.
  static func name(of item: ItemPath) -> String {
    let name = prefix + item.name.text
    guard name.utf8.count > 255 else { return name }
    return prefix + SHA256.hexDigest(of: Array(item.name.text.utf8))
  }

  /// The item whose private copy is at a place: `<site>/held/<entry>/<name>`; nil for any other place.
  static func itemOfCopy(at place: ItemPath) -> ItemPath? {
    let entry = place.parent
    let site = entry.parent.parent
    guard EntryName(entry.name) != nil, isSite(site.name) else { return nil }
    return site.parent.appending(place.name)
  }

  static func path(of location: ItemPath) -> String {
    let name = location.nameStart
    guard location.bytes.count - name + prefix.utf8.count <= shortName else {
      return location.parent.appending(FileName(self.name(of: location))).text
    }
    var bytes = location.bytes
    bytes.insert(contentsOf: prefix.utf8, at: name)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Shorter than a name may be, even if every byte of it is repaired to three bytes.
  private static let shortName = 85

  /// Opens the site of an item.
  ///
  /// - Parameters:
  ///   - location: the item's place, as far as the site's name shows it.
  ///   - path: the site's path, if it is known.
  /// - Returns: nil if there is no site.
  /// - Throws: `unsafe`; errors of the kernel.
  static func open(
    _ location: ItemPath, at path: String? = nil, isNew: Bool = false
  ) throws -> ItemSite? {
    let path = path ?? self.path(of: location)
    // The item is published in the directory that contains its site.
    let options: OpenOptions = [.readOnly, .directory, .noFollow]
    guard let open = try ifPresent(ItemPath.openDirectory(path, options)) else { return nil }
    return try ItemSite(location, open, at: path, isNew: isNew)
  }

  /// Opens an item's site as a visitor: nil also for a site that this user may not open.
  ///
  /// - Parameter isOwn: whether to return nil also for a site that no process of this user uses: it
  ///   came with a copy or an archive, or belongs to another user, as its directory does.
  static func openIfPermitted(
    _ location: ItemPath, at path: String? = nil, isOwn: Bool = false
  ) throws -> ItemSite? {
    do {
      return try open(location, at: path)
    } catch let error as Errno
      where [.accessDenied, .notDirectory, .tooManyLinks].contains(error)
    {
      return nil
    } catch let error as WormholeError where isOwn && error.code == .unsafe {
      return nil
    }
  }

  /// How many times in a row a directory may be replaced while a site is made in it.
  private static let replacements = 100

  /// Opens the site, and makes it if it is missing.
  ///
  /// - Parameter isMissing: a hint: it is probably missing; only decides what is tried first.
  /// - Complexity: two system calls if it exists; else the directory's status, a `mkdir`, and both.
  static func openOrMake(_ location: ItemPath, isMissing: Bool = false) throws -> ItemSite {
    let path = path(of: location)
    for attempt in 0..<renameRaceLimit {
      let mayExist = attempt > 0 || !isMissing
      do {
        if mayExist, let site = try open(location, at: path, isNew: attempt > 0) { return site }
      } catch let error as Errno where error == .accessDenied {
        throw ofOtherUser(location, path)
      }
      let access = access(in: try directory(of: location))
      do throws(Errno) {
        if access == .owner, !ForeignLinks.areRefused {
          try access.makeDirectoryIfMissing(path, at: Directory.current)
        } else {
          // By name: a directory for a group is opened beneath its parent, and no link of another
          // user leads elsewhere.
          let parent = try location.openParent()
          try access.makeDirectoryIfMissing(
            name(of: location), at: parent.rawValue, staging: prefix)
        }
      } catch {
        if [.accessDenied, .notPermitted, .readOnlyFileSystem].contains(error) {
          throw unwritable(location, error)
        }
        // The directory was just replaced, or is gone: opening it then fails. Not forever, because
        // some directories that accept no entries fail this way (/proc).
        guard error == .noSuchFile else { throw error }
        if attempt >= replacements { throw unwritable(location, error) }
      }
    }
    throw Errno.staleHandle
  }

  private static func ofOtherUser(_ location: ItemPath, _ path: String) -> WormholeError {
    WormholeError(
      .permissionDenied, "coordinate the item", path: location.text,
      reason: "another user has it, or had it and was killed: '\(path)' belongs to that user",
      remedy:
        "try again later, or remove that directory if no process uses the item; users who share files "
        + "need a directory of their group (mode 2770)",
      errorNumber: Errno.accessDenied.rawValue)
  }

  private static func unwritable(_ location: ItemPath, _ error: Errno) -> WormholeError {
    let refusal = WormholeError.refused("", path: location.parent.text, error).reason
    return WormholeError(
      .permissionDenied, "coordinate the item", path: location.text,
      reason:
        "nothing can be made in its directory (\(refusal)), where a hidden directory lies beside "
        + "an item while it is changed or shared, and where the change is published",
      remedy: error == .readOnlyFileSystem
        ? "the file system is mounted read-only"
        : "look at the owner and mode of the directory (ls -ld '\(location.parent.text)/')",
      errorNumber: error.rawValue)
  }

  private static func directory(of location: ItemPath) throws -> FileStatus {
    do throws(Errno) {
      return try fileStatus(location.parent.text + "/", followingLinks: true)
    } catch {
      guard error == .noSuchFile || error == .notDirectory else { throw error }
      throw WormholeError(
        .directoryMissing, "find the item", path: location.text,
        reason: "there is no directory '\(location.parent.text)' any more",
        errorNumber: error.rawValue)
    }
  }

  /// A directory whose group may write to it, and whose files belong to the group, is a shared one.
  private static func access(in parent: FileStatus) -> ContainerAccess {
    guard parent.permissions & 0o2020 == 0o2020 else { return .owner }
    ForeignLinks.expect()
    return .group
  }

  // If other users may write to the directory, one of them may have made it to get our copies.
  private static func check(
    _ status: FileStatus, _ location: ItemPath, at path: String
  ) throws -> ContainerAccess {
    let access: ContainerAccess = status.permissions & 0o020 == 0 ? .owner : .group
    let isOurs = status.owner == Program.effectiveUser
    if status.permissions & 0o007 == 0 {
      if isOurs { return access }
      let parent = try fileStatus(location.parent.text + "/", followingLinks: true)
      // Only in a shared directory, and of its own group: in /tmp any user may make one.
      if access == .group, self.access(in: parent) == .group, status.group == parent.group,
        Program.isMember(ofGroup: status.group)
      {
        return access
      }
      // The superuser helps the owner of the directory, or of the item.
      if status.owner == parent.owner { return access }
      if Program.effectiveUser == 0, try location.status()?.owner == status.owner { return access }
    }
    let mode = String(status.permissions, radix: 8)
    throw WormholeError(
      .unsafe, "coordinate the item", path: location.text,
      reason: "'\(path)' belongs to user \(status.owner) and has mode \(mode)",
      remedy: "if nobody coordinates the item, rm -r '\(path)'")
  }

  /// Makes a directory for a holder, in the lease.
  ///
  /// It stays locked as long as its process may use it: an accessor that was taken over may make it again
  /// by its path, and then needs the site around it.
  func makeDirectory(_ entry: String, at held: Int32) throws(Errno) -> SharedDescriptor {
    try home.makeDirectoryIfMissing(entry, at: held, staging: nil)
    let directory = try FileDescriptor.open(entry, at: held, [.readOnly, .directory, .noFollow])
    _ = try directory.tryLock(.exclusive)
    return SharedDescriptor(directory)
  }

  /// Moves an entry of the lease aside, to be removed; in one step.
  func setAside(_ entry: FileName, at held: Int32) throws(Errno) {
    try home.setAside(entry, at: held)
  }

  /// Takes the lease, if this process has kept it and no other was holder since.
  func takeKeptLease() throws -> Lease? {
    try keptSite.withLock(\.self)?.takeLease(of: location)
  }

  /// The directory for a new entry, if this process's last one left its own in the lease.
  func takeSpare() -> SharedDescriptor? { keptSite.withLock(\.self)?.takeSpare() }

  /// Leaves the only entry's directory in the lease, if the item is changed again and again.
  ///
  /// - Returns: false if it is not; otherwise the site is to be kept (`KeptSites`) when the lease has
  ///   ended.
  func keep(_ entry: String, _ directory: SharedDescriptor, under lease: Lease) throws -> Bool {
    guard home.access == .owner, KeptSites.shared.countChange(of: location),
      let keptSite = try makeKeptSite(), try isEmpty(directory)
    else { return false }
    let held = lease.held.descriptor.rawValue
    let isThere = try ifPresent(rename(entry, at: held, to: LeaseSite.spare, at: held)) != nil
    if isThere { keptSite.leave(lease, spare: directory) }
    return isThere
  }

  // Only where each change of a directory shows in its times, and not in another user's directory:
  // that user could not open the site. The same holds for a directory that all users may write to.
  private func makeKeptSite() throws(Errno) -> KeptSite? {
    if let keptSite = keptSite.withLock(\.self) { return keptSite }
    let hasFineTimes = status.changedNanoseconds % 1_000 != 0
    guard hasFineTimes, try directory.descriptor.fileSystem().showsEachChange else { return nil }
    let parent = try fileStatus("..", at: descriptor)
    guard parent.owner == status.owner, parent.permissions & 0o002 == 0 else { return nil }
    let made = KeptSite()
    keptSite.withLock { $0 = made }
    return made
  }

  // One call shows all entries of a directory that has few.
  private func isEmpty(_ directory: SharedDescriptor) throws(Errno) -> Bool {
    try directory.descriptor.rewind()
    var isEmpty = true
    _ = try directory.descriptor.nextNames { _ in isEmpty = false }
    return isEmpty
  }

  /// Closes the lease, because the site is left.
  func closeKept() { keptSite.withLock(\.self)?.close() }

  /// Whether a process that looks for the item's site finds this one.
  func isAtItsPlace() throws(Errno) -> Bool {
    try tolerating([.noSuchFile, .notDirectory], fileStatus(path))?.isSameFile(as: status) ?? false
  }

  /// Opens a directory in the site.
  func open(_ entry: String) throws(Errno) -> FileDescriptor {
    try FileDescriptor.open(entry, at: descriptor, [.readOnly, .directory, .noFollow])
  }

  /// All current entries of the site; none once it is removed.
  func entries() throws(Errno) -> [FileDescriptor.Entry] {
    // The last process has removed the site while it was open here: it is empty.
    return try ifPresent(
      FileDescriptor.open(".", at: descriptor, [.readOnly, .directory]).remainingEntries()) ?? []
  }
}
