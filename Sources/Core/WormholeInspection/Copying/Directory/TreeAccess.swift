import Wormhole
import WormholeSystem

/// Gives what was copied into a container, with the modes and the group of its origin, to the users of
/// the new container.
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

  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePlace) throws -> Void? {
    // A file beside the container's own entries has the mode that its owner has chosen.
    if access == .owner, place.path == path, !SharedContainer.isOurs(entry.name) { return nil }
    let status = try fileStatus(entry.name, at: place.rawValue)
    if status.group != group {
      try setOwner(entry.name, at: place.rawValue, nil, group: group)
    }
    guard status.kind != .symbolicLink else { return nil }
    let permissions = permissions(status)
    if permissions != status.permissions {
      try setPermissions(entry.name, at: place.rawValue, permissions)
    }
    return status.kind == .directory ? () : nil
  }

  private func permissions(_ status: FileStatus) -> UInt32 {
    guard access == .group else { return status.permissions & 0o700 }
    let setGroup: UInt32 = status.kind == .directory ? 0o2000 : 0
    // The mark of a value is for its owner only.
    let isShared = status.permissions & 0o060 == 0o060
    return status.permissions | setGroup | (isShared ? 0 : (status.permissions & 0o700) >> 3)
  }

  mutating func enter(
    _ name: FileName, _ mark: Void, at place: TreePlace
  ) throws -> SharedDescriptor? {
    SharedDescriptor(try openDirectory(name, at: place.rawValue))
  }
}
