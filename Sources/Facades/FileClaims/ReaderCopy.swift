import AppGroup
import FileTrees
import Synchronization
import SystemCalls

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
