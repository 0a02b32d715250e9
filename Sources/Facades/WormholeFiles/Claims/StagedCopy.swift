import Synchronization
import Wormhole
package import WormholeSystem

/// The private copy of an item in a claim: made when access was granted, looked at when the accessor
/// has returned.
package struct StagedCopy: Sendable {
  /// What the accessor left.
  package enum Change: Sendable, Equatable {
    /// Everything is as it was.
    case none
    case replaced(FileStatus)
    case removed
  }

  /// How the copy was made; nil when it was empty at first.
  private var mode: TreeCopy.Mode?
  /// What the item was when it was copied; nil when there was nothing.
  private var item: FileStatus?
  /// What the copy was when it was made; nil when there was none.
  private var original: FileStatus?
  /// The entries of a directory, and of its copy, when the copy was made; nil for anything else.
  private var itemTree: TreeManifest?
  private var copyTree: TreeManifest?

  /// An item that changes while it is copied is copied again, but not for ever.
  private static let attempts = 4

  /// Makes the copy.
  ///
  /// - Parameter check: called in between; what it throws ends the copy.
  /// - Returns: nil for an access that works on the item itself.
  package static func make(
    of access: ItemAccess, check: () throws -> Void
  ) throws -> StagedCopy? {
    guard let claim = access.claim, access.kind.isOnCopy else { return nil }
    return try reporting("copy the item", path: access.location.text) {
      let item = try access.location.status()
      try refuseMountPoint(item, access, claim)
      return try make(access.kind.copyMode, of: access.location, item, in: claim, check)
    }
  }

  // Nothing can be put in the place of an item that another file system is mounted on.
  private static func refuseMountPoint(
    _ item: FileStatus?, _ access: ItemAccess, _ claim: Claim
  ) throws {
    // The site is in the same directory.
    guard let item, item.device != claim.site.device else { return }
    throw FileCoordinationError(
      .notAnItem, access.kind.action, path: access.location.text,
      reason: "another file system is mounted on it",
      remedy: "unmount it first, or name what is in it")
  }

  private static func make(
    _ mode: TreeCopy.Mode?, of location: ItemPath, _ found: FileStatus?, in claim: Claim,
    _ check: () throws -> Void
  ) throws -> StagedCopy {
    let ofNothing = StagedCopy(mode: mode)
    guard let mode else { return ofNothing }
    var found = found
    for attempt in 1...attempts {
      guard let before = found else { return ofNothing }
      guard [.regular, .directory, .symbolicLink].contains(before.kind) else {
        throw FileCoordinationError(
          .notAnItem, "copy the item", path: location.text,
          reason: "a \(before.kind) has no content that could be published",
          remedy: "use it without coordination")
      }
      let isTree = before.kind == .directory
      // Deleting keeps all others out of the directory, so only the copy is looked at again.
      let itemTree = isTree && mode == .copy ? try tree(of: location) : nil
      let isCopied = try copy(location, before, to: claim, mode, check)
      found = try location.status()
      guard isCopied, let copy = try status(in: claim) else { continue }
      // A directory is compared when it is published.
      let isSame = isTree || found.map { $0.isUnchanged(since: before) } ?? false
      guard isSame || attempt == attempts else {
        try TreeRemoval().remove(location.name, at: claim.descriptor)
        continue
      }
      return StagedCopy(
        mode: mode, item: before, original: copy, itemTree: itemTree,
        copyTree: isTree ? try tree(in: claim) : nil)
    }
    return ofNothing
  }

  private static func copy(
    _ location: ItemPath, _ found: FileStatus, to claim: Claim,
    _ mode: TreeCopy.Mode, _ check: () throws -> Void
  ) throws -> Bool {
    let name = location.name
    do {
      return try withoutActuallyEscaping(check) { check in
        guard found.kind == .directory else {
          // What a tree is made for costs a file some calls that it can do without.
          var entry = EntryCopy(
            mode: mode, check: check, dropsInherited: try claim.hasDefaultAccessList(),
            leavesOut: ItemPublisher.attribute)
          return try entry.copy(
            FileName(bytes: location.bytes), at: Directory.current, found, to: name,
            at: claim.descriptor, path: TreePath(name))
        }
        let parent = try FileDescriptor.open(location.parent.text + "/", [.pathOnly, .directory])
        let copy = TreeCopy(
          mode: mode, leavesOut: isSite, check: check, refusesMounts: true)
        try copy.copy(name, at: parent.rawValue, to: name, at: claim.descriptor)
        return true
      }
    } catch let error as TreeError
      where [.refused(.noSuchFile), .refused(.isDirectory)].contains(error.reason)
      && error.path == TreePath(name)
    {
      // Removed meanwhile, or become another kind of file.
      return false
    }
  }

  private static func status(in claim: Claim) throws(Errno) -> FileStatus? {
    try ifPresent(fileStatus(claim.site.location.name, at: claim.descriptor))
  }

  /// What the accessor left.
  package func change(in claim: Claim) throws -> Change {
    guard let now = try Self.status(in: claim) else {
      return original == nil ? .none : .removed
    }
    guard let original else { return .replaced(now) }
    guard now.kind == original.kind else { return .replaced(now) }
    if let copyTree {
      return try Self.tree(in: claim).isUnchanged(since: copyTree) ? .none : .replaced(now)
    }
    return now.isUnchanged(since: original) ? .none : .replaced(now)
  }

  /// Whether the item is still what it was when it was copied. Where nothing was copied, no change is
  /// lost by publishing; of a directory the entries are compared: see `changes(at:atMost:)`.
  func isCurrent(_ now: FileStatus?) -> Bool {
    if mode == nil || itemTree != nil { return true }
    guard let item, let now else { return item == nil && now == nil }
    return now.isUnchanged(since: item)
  }

  /// Whether the entries of a directory have to be compared before its copy is published.
  var hasEntries: Bool { itemTree != nil }

  /// The entries of a directory that others changed since it was copied.
  package func changes(at location: ItemPath, atMost limit: Int) throws -> [TreePath] {
    guard let itemTree else { return [] }
    return try Self.tree(of: location).changes(since: itemTree, atMost: limit)
  }

  private static func tree(of location: ItemPath) throws -> TreeManifest {
    let parent = try FileDescriptor.open(location.parent.text + "/", [.pathOnly, .directory])
    return try TreeManifest(
      of: location.name, at: parent.rawValue, leavingOut: isSite)
  }

  private static func tree(in claim: Claim) throws -> TreeManifest {
    try TreeManifest(of: claim.site.location.name, at: claim.descriptor)
  }

  private static func isSite(_ name: FileName) -> Bool { name.hasPrefix(ItemSite.prefix) }

  /// Where a copy is kept that is not published and must not be lost.
  static func keptPath(for item: ItemPath) -> String {
    let ending = ".conflict-" + Nonce.next()
    var name = item.name.text
    while name.utf8.count + ending.utf8.count > 255 { name.removeLast() }
    return item.parent.appending(FileName(name + ending)).text
  }
}

/// A copy of an item for a reader alone, removed when the reader has done with it.
///
/// Beside the item, so that it can share the item's content; in the directory for temporary files
/// where nothing may be made beside it.
package final class ReaderCopy: Sendable {
  package let path: String
  private let site: ItemSite?
  private let parent: SharedDescriptor
  private let name: FileName
  /// Locked, so that others do not take it for the leftover of a dead process.
  private let directory: FileDescriptor

  private let isRemoved = Atomic(false)

  /// - Parameter check: called between files; what it throws ends the copy.
  package static func make(of access: ItemAccess, check: () throws -> Void) throws -> ReaderCopy {
    for _ in 0..<renameRaceLimit {
      if let snapshot = try ReaderCopy(at: access.location) {
        // Removed with the snapshot if this fails.
        try copy(access.location, to: snapshot.directory.rawValue, check)
        return snapshot
      }
    }
    throw Errno.staleHandle
  }

  /// - Returns: nil when the last process has just removed the site, or the empty directory in it.
  private init?(at location: ItemPath) throws {
    let site = try Self.site(at: location)
    self.site = site
    let base = site == nil ? Program.environment("TMPDIR") ?? "/tmp" : ItemSite.path(of: location)
    let text = (site == nil ? ".coordination-" : ItemSite.trashPrefix) + Nonce.next()
    name = FileName(text)
    path = base + "/" + text + "/" + location.name.text
    do throws(Errno) {
      let open = SharedDescriptor(try FileDescriptor.open(base, [.readOnly, .directory]))
      parent = open
      try makeDirectory(text, at: open.descriptor.rawValue, mode: 0o700)
      directory = try FileDescriptor.open(
        text, at: open.descriptor.rawValue, [.readOnly, .directory, .noFollow])
      guard try directory.tryLock(.exclusive), try directory.status().links > 0 else { return nil }
    } catch {
      guard error == .noSuchFile, site != nil else { throw error }
      return nil
    }
  }

  // An access that was given up only releases it.
  deinit { remove(SiteRemoval()) }

  private static func site(at location: ItemPath) throws -> ItemSite? {
    do {
      return try ItemSite.openOrMake(location)
    } catch let error as FileCoordinationError where error.code == .permissionDenied {
      return nil
    } catch let error as Errno where error == .accessDenied {
      // Its owner is coordinating it.
      return nil
    }
  }

  private static func copy(
    _ location: ItemPath, to directory: Int32, _ check: () throws -> Void
  ) throws {
    guard try location.status() != nil else { return }
    let source = try FileDescriptor.open(location.parent.text + "/", [.pathOnly, .directory])
    let name = location.name
    try withoutActuallyEscaping(check) { check in
      let copy = TreeCopy(
        mode: .copy, leavesOut: { $0.hasPrefix(ItemSite.prefix) }, check: check)
      try copy.copy(name, at: source.rawValue, to: name, at: directory)
    }
  }

  /// - Parameter removal: gets the site that is left.
  package func remove(_ removal: SiteRemoval) {
    guard !isRemoved.exchange(true, ordering: .relaxed) else { return }
    do {
      try TreeRemoval().remove(name, at: parent.descriptor.rawValue)
    } catch {
      // The access itself has ended already; the next process removes the leftovers.
      Diagnostics.report(error)
    }
    if let site { removal.add(site) }
  }
}
