import AppGroup
import SystemCalls

/// A copy of an item for a reader alone, removed when the reader has done with it.
///
/// Beside the item, so that it can share the item's content; in the directory for temporary files
/// where nothing may be made beside it.
final class Snapshot: Sendable {
  let path: String
  private let site: ItemSite?
  private let parent: SharedDescriptor
  private let name: FileName
  /// Keeps others from taking it for what a dead process left.
  private let directory: FileDescriptor

  init(of access: ItemAccess, check: () throws -> Void) throws {
    let location = access.location
    site = try Self.site(at: location)
    let base = site == nil ? Program.environment("TMPDIR") ?? "/tmp" : ItemSite.path(of: location)
    let text = (site == nil ? ".coordination-" : ItemSite.trashPrefix) + Nonce.next()
    name = FileName(text)
    path = base + "/" + text + "/" + location.name
    let open = SharedDescriptor(try FileDescriptor.open(base, [.readOnly, .directory]))
    parent = open
    try makeDirectory(text, at: open.descriptor.rawValue, mode: 0o700)
    directory = try FileDescriptor.open(
      text, at: open.descriptor.rawValue, [.readOnly, .directory, .noFollow])
    // Free, or swept in this very moment, and then the copy fails.
    _ = try directory.tryLock(.exclusive)
    do {
      try Self.copy(location, to: directory.rawValue, check)
    } catch {
      remove()
      throw error
    }
  }

  private static func site(at location: ItemLocation) throws -> ItemSite? {
    do {
      return try ItemSite.openOrMake(location)
    } catch let error as Errno
      where [.accessDenied, .notPermitted, .readOnlyFileSystem].contains(error)
    {
      return nil
    }
  }

  private static func copy(
    _ location: ItemLocation, to directory: Int32, _ check: () throws -> Void
  ) throws {
    guard try location.status() != nil else { return }
    let source = try FileDescriptor.open(location.parent + "/", [.pathOnly, .directory])
    let name = FileName(location.name)
    try withoutActuallyEscaping(check) { check in
      let copy = TreeCopy(
        mode: .copy, leavesOut: { $0.hasPrefix(ItemSite.prefix) }, check: check)
      _ = try copy.copy(name, at: source.rawValue, to: name, at: directory)
    }
  }

  func remove() {
    do {
      try TreeRemoval().remove(name, at: parent.descriptor.rawValue)
      try site?.removeIfUnused()
    } catch {
      // The access itself has ended already; what is left behind is swept by whoever comes next.
      Diagnostics.report(error)
    }
  }
}
