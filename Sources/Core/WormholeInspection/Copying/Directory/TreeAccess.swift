import Wormhole
import WormholeSystem

/// Gives what was copied into a container, with its origin's modes and group, to the users of the
/// new container.
struct TreeAccess: TreeVisitor {
  let access: ContainerAccess
  let group: UInt32
  /// The path of the container in this walk.
  let path: TreePath

  init(in root: ContainerRoot, path: TreePath) throws {
    access = root.access
    group = try root.handle().descriptor.status().group
    self.path = path
  }

  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePosition) throws -> Void? {
    if access == .owner, isBeside(entry.name, at: place) { return nil }
    let status = try fileStatus(entry.name, at: place.rawValue)
    // In a private directory the group means nothing, and this user may not be in the directory's.
    if access == .group, status.group != group {
      try setOwner(entry.name, at: place.rawValue, nil, group: group)
    }
    guard status.kind != .symbolicLink else { return nil }
    let permissions = permissions(status)
    if permissions != status.permissions {
      try setPermissions(entry.name, at: place.rawValue, permissions)
    }
    return status.kind == .directory ? () : nil
  }

  /// Whether an entry belongs to the users of the container, who have chosen its mode.
  private func isBeside(_ name: FileName, at place: TreePosition) -> Bool {
    place.path == path
      ? !SharedContainer.isOurs(name)
      : place.path.bytes.dropFirst(path.bytes.count + 1).elementsEqual(
        TreeSnapshot.Item.ofWatches.utf8)
  }

  private func permissions(_ status: FileStatus) -> UInt32 {
    guard access == .group else { return status.permissions & 0o700 }
    let setGroup: UInt32 = status.kind == .directory ? 0o2000 : 0
    // The mark of a value is for its owner only.
    let isShared = status.permissions & 0o060 == 0o060
    return status.permissions | setGroup | (isShared ? 0 : (status.permissions & 0o700) >> 3)
  }

  mutating func enter(
    _ name: FileName, _ mark: Void, at place: TreePosition
  ) throws -> SharedDescriptor? {
    SharedDescriptor(try openDirectory(name, at: place.rawValue))
  }
}
