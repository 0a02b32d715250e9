import Wormhole
import WormholeSystem

/// The copy of a container's files without keys, to a directory that others may use: files that a
/// group keeps beside the container's own entries, and the logs of a directory.
///
/// On etcd they are in this machine's directory of the container.
struct BesideCopy {
  private let items: [TreePicture.Item]
  private let picture: TreePicture?
  private let path: String

  /// - Throws: `AppGroupError.nameCollision` if the directory has an entry with one of these names.
  init(
    _ source: ContainerRoot, to path: String, hasLogs: Bool, check: @escaping () throws -> Void
  ) throws {
    self.path = path
    let list = {
      try TreePicture.Item.beside(in: source)
        + (hasLogs ? TreePicture.Item.parts(of: [.log], in: source) : [])
    }
    items = try list()
    guard !items.isEmpty else {
      picture = nil
      return
    }
    try ContainerLocation.create(path)
    let target = try ContainerRoot(path: path, access: .owner)
    let directory = try target.handle().descriptor.rawValue
    for item in items where try exists(FileName(bytes: item.path), at: directory) {
      throw AppGroupError(
        .nameCollision, "copy the container",
        path: path + "/" + String(decoding: item.path, as: UTF8.self),
        reason: "there is something already", remedy: "move it away")
    }
    picture = TreePicture(of: source, to: target, check: check, items: list)
  }

  var count: Int { picture?.count ?? 0 }

  /// Copies the changes since the last time, and returns their number.
  func copy() throws -> Int { try picture?.pass() ?? 0 }

  /// Removes the copied files.
  func remove() {
    do {
      let directory = try FileDescriptor.open(path, [.readOnly, .directory])
      for item in items {
        try TreeRemoval().remove(FileName(bytes: item.path), at: directory.rawValue)
      }
    } catch {
      // The caller reports why the copy failed, and the next copy names the entry in its way.
      return
    }
  }
}
