import Synchronization
import Wormhole
import WormholeSystem
import WormholeToolkit

/// An item's private copy in an entry: made when access was granted, compared when the accessor has
/// returned.
struct StagedCopy: Sendable {
  /// The changes that the accessor left.
  enum Change: Sendable, Equatable {
    /// Nothing has changed.
    case none
    case replaced(FileStatus)
    case removed
  }

  let entry: ItemEntry
  /// How the copy is made; nil if it is initially empty.
  private let mode: TreeCopy.Mode?
  /// Whether the accessor changes the item. If others have changed it since it was copied,
  /// publishing would lose their changes. An accessor that replaces the item loses none.
  private let comparesItem: Bool
  /// The status of the item when it was copied; nil if it was missing.
  private var item: FileStatus?
  /// The status of the copy when it was made; nil if there was none.
  private var original: FileStatus?
  /// The entries of a directory, and of its copy, when the copy was made; nil for other items.
  private var itemTree: TreeManifest?
  private var copyTree: TreeManifest?

  /// An item that changes while it is copied is copied again, up to this number of times.
  private static let attempts = 4

  private var location: ItemPath { entry.site.location }

  /// Makes the copy.
  ///
  /// - Parameters:
  ///   - isFresh: whether the access was granted just now, so that nothing can have changed since.
  ///   - showsItem: whether an accessor that replaces the item gets a copy, to look at and remove.
  ///   - check: called in between; an error that it throws ends the copy.
  /// - Returns: nil for an access that works on the item itself.
  init?(
    of access: ItemAccess, isFresh: Bool, showsItem: Bool, check: @escaping () throws -> Void
  ) throws {
    guard let entry = access.entry, access.kind.isOnCopy else { return nil }
    self.entry = entry
    comparesItem = access.kind.copyMode != nil
    mode = access.kind.copyMode ?? (showsItem ? .copy : nil)
    try reporting("copy the item", path: location.text) {
      let found = isFresh ? access.found : try location.status()
      // Nothing can replace an item that another file system is mounted on. The site is in the same
      // directory.
      if let found, found.device != entry.site.device {
        throw WormholeError(
          .notAnItem, access.kind.action, path: location.text,
          reason: "another file system is mounted on it",
          remedy: "unmount it first, or name what is in it")
      }
      // Otherwise each item of an access to many would need another descriptor.
      let keeper = isFresh ? access : nil
      if let mode { try make(mode, of: found, keptBy: keeper, check: check) }
    }
  }

  private mutating func make(
    _ mode: TreeCopy.Mode, of found: FileStatus?, keptBy access: ItemAccess?,
    check: @escaping () throws -> Void
  ) throws {
    var found = found
    for attempt in 1...Self.attempts {
      guard let before = found else { return }
      guard [.regular, .directory, .symbolicLink].contains(before.kind) else {
        // An item of any kind may be replaced.
        if !comparesItem { return }
        throw WormholeError(
          .notAnItem, "copy the item", path: location.text,
          reason: "a \(before.kind) has no content that could be published",
          remedy: "use it without coordination")
      }
      let isTree = before.kind == .directory
      // Deleting and replacing keep all others out of the directory, so only the copy is looked at
      // again.
      let tree = isTree && mode == .copy && comparesItem ? try treeOfItem() : nil
      let isCopied = try copyOrStandIn(before, mode, keptBy: access, check: check)
      found = try location.status()
      guard isCopied, let copy = try status() else { continue }
      // A directory is compared when it is published.
      let isSame = isTree || found.map { $0.isUnchanged(since: before) } ?? false
      guard isSame || attempt == Self.attempts else {
        try TreeRemoval().remove(location.name, at: entry.descriptor)
        continue
      }
      (item, original, itemTree) = (before, copy, tree)
      copyTree = isTree ? try treeOfCopy() : nil
      return
    }
  }

  /// Makes the copy. For an accessor that only removes a file that cannot be read, makes an empty
  /// file, just as unreadable, instead: removing a file needs the right to change its directory,
  /// not to read the file.
  ///
  /// - Returns: false if the item was removed meanwhile, or replaced by another kind of file.
  private func copyOrStandIn(
    _ found: FileStatus, _ mode: TreeCopy.Mode, keptBy access: ItemAccess?,
    check: @escaping () throws -> Void
  ) throws -> Bool {
    let name = location.name
    do {
      guard found.kind == .directory else {
        // A file needs fewer calls than a tree. A write within the tick in which the item was
        // published, of equally many bytes, must not look like none.
        var file = EntryCopy(
          mode: mode, check: check, dropsInherited: try entry.hasDefaultAccessList(),
          leavesOut: ItemPublisher.attribute, isDistinct: true)
        if let access, mode == .copy, found.kind == .regular,
          let opened = try ItemLock.open(location, found: found), opened.status.kind == .regular
        {
          try opened.copy(with: &file, to: name, at: entry.descriptor)
          access.keep(opened)
          return true
        }
        return try file.copy(
          FileName(bytes: location.bytes), at: Directory.current, found, to: name,
          at: entry.descriptor, path: TreePath(name))
      }
      let copy = TreeCopy(
        mode: mode, leavesOut: ItemSite.isSite, check: check, refusesMounts: true,
        isDistinct: true)
      let parent = try location.openParent()
      try copy.copy(name, at: parent.rawValue, to: name, at: entry.descriptor)
      return true
    } catch let error as TreeError
      where [.refused(.noSuchFile), .refused(.isDirectory)].contains(error.reason)
      && error.path == TreePath(name)
    {
      return false
    } catch let error as TreeError
      where [.refused(.accessDenied), .refused(.notPermitted)].contains(error.reason)
      && (mode == .link || !comparesItem) && found.kind == .regular
    {
      try removeIfPresent(name, at: entry.descriptor)
      _ = try FileDescriptor.open(
        name, at: entry.descriptor, [.writeOnly, .create, .exclusive, .noFollow], mode: 0)
      return true
    }
  }

  private func status() throws(Errno) -> FileStatus? {
    try ifPresent(fileStatus(location.name, at: entry.descriptor))
  }

  func change() throws -> Change {
    guard let now = try status() else { return original == nil ? .none : .removed }
    guard let original, now.kind == original.kind else { return .replaced(now) }
    // The accessor has moved or removed the item itself. Its second names, which changed with it,
    // must not bring it back.
    if mode == .link, now.isSameFile(as: original), try location.status() == nil { return .none }
    let isUnchanged =
      if let copyTree {
        try treeOfCopy().isUnchanged(since: copyTree)
      } else {
        now.isUnchanged(since: original)
      }
    return isUnchanged ? .none : .replaced(now)
  }

  /// Keeps a changed copy that cannot be published beside the item, where its owner looks for it.
  ///
  /// - Returns: Its path; nil if nothing was changed, or nothing may be created there.
  func keep() -> String? {
    let path = KeptCopies(item: location).newPath()
    do {
      guard case .replaced = try change() else { return nil }
      try rename(location.name, at: entry.descriptor, to: path, at: Directory.current)
      return path
    } catch {
      // The accessor removed its copy, or nothing may be created here: the cause is the error.
      return nil
    }
  }

  /// Whether publishing loses none of others' changes: the item is unchanged since it was copied,
  /// or the accessor replaces it. For a directory the entries are compared: see `changes(atMost:)`.
  func isCurrent(_ now: FileStatus?) -> Bool {
    if !comparesItem || itemTree != nil { return true }
    guard let item, let now else { return item == nil && now == nil }
    return now.isUnchanged(since: item, apartFromNames: mode == .link)
  }

  /// Whether the entries of a directory have to be compared before its copy is published.
  var hasEntries: Bool { itemTree != nil }

  /// The entries of a directory that others changed since it was copied.
  func changes(atMost limit: Int) throws -> [TreePath] {
    guard let itemTree else { return [] }
    return try treeOfItem().changes(since: itemTree, atMost: limit)
  }

  private func treeOfItem() throws -> TreeManifest {
    let parent = try location.openParent()
    return try TreeManifest(
      of: location.name, at: parent.rawValue, leavingOut: ItemSite.isSite)
  }

  private func treeOfCopy() throws -> TreeManifest {
    try TreeManifest(of: location.name, at: entry.descriptor)
  }
}

/// A copy of an item for one reader, a zip file for a directory, removed when the reader has
/// finished with it.
///
/// It is beside the item, so that it can share the item's content; in the directory for temporary
/// files if no entry may be made beside it.
final class ReaderCopy: Sendable {
  let path: String
  private let site: ItemSite?
  private let parent: SharedDescriptor
  private let name: FileName
  /// Locked, so that others do not take it for a dead process's leftover.
  private let directory: FileDescriptor

  private let isRemoved = Atomic(false)

  /// - Parameter check: called between files; an error that it throws ends the copy.
  static func make(
    of access: ItemAccess, check: @escaping () throws -> Void
  ) throws -> ReaderCopy {
    let location = access.location
    for _ in 0..<renameRaceLimit {
      let status = try location.status()
      let isDirectory = status?.kind == .directory
      guard let snapshot = try ReaderCopy(at: location, ending: isDirectory ? ".zip" : "") else {
        continue
      }
      guard status != nil else { return snapshot }
      do {
        let parent = try location.openParent()
        // Removed with the snapshot if this fails.
        if isDirectory {
          try ZipFile.write(
            location.name, at: parent.rawValue, to: snapshot.path, check: check)
        } else {
          try TreeCopy(leavesOut: ItemSite.isSite, check: check).copy(
            location.name, at: parent.rawValue, to: location.name, at: snapshot.directory.rawValue)
        }
      } catch let error as TreeError where error.reason == .refused(.noSuchFile) {
        // A writer that was stopped, and that this reader has passed by, may have removed it.
        guard try location.status() == nil else { throw error }
        continue
      }
      return snapshot
    }
    throw Errno.staleHandle
  }

  /// - Returns: nil if the last process has just removed the site, or the empty directory in it.
  private init?(at location: ItemPath, ending: String) throws {
    let site = try Self.site(at: location)
    self.site = site
    let base = site?.path ?? Program.environment("TMPDIR") ?? "/tmp"
    let text = (site == nil ? ItemSite.prefix : ItemHome.trashPrefix) + Nonce.next()
    name = FileName(text)
    path = base + "/" + text + "/" + location.name(ending: ending)
    do throws(Errno) {
      let open = SharedDescriptor(try FileDescriptor.open(base, [.readOnly, .directory]))
      parent = open
      try makeDirectory(text, at: open.descriptor.rawValue, mode: 0o700)
      directory = try FileDescriptor.open(
        text, at: open.descriptor.rawValue, [.readOnly, .directory, .noFollow])
      guard try directory.tryLock(.exclusive), try directory.status().links > 0 else { return nil }
    } catch {
      site?.leave()
      guard error == .noSuchFile, site != nil else { throw error }
      return nil
    }
  }

  // An access that was given up only releases it.
  deinit { remove() }

  private static func site(at location: ItemPath) throws -> ItemSite? {
    do {
      return try ItemSite.openOrMake(location)
    } catch let error as WormholeError where error.code == .permissionDenied {
      return nil
    }
  }

  func remove() {
    guard !isRemoved.exchange(true, ordering: .relaxed) else { return }
    // The access itself has already ended; the next process removes the leftovers.
    Diagnostics.reporting { try TreeRemoval().remove(name, at: parent.descriptor.rawValue) }
    site?.leave()
  }
}
