import AppGroup
package import SystemCalls

/// Where an item is: the real directory, and the name in it. Two processes that mean the same file by
/// different paths find the same location.
package struct ItemLocation: Hashable, Sendable {
  /// The directory without any symbolic link in it; "" is the root.
  package let parent: String
  package let name: String

  package var path: String { parent + "/" + name }

  /// Finds the item that a path means.
  ///
  /// - Parameter followingLink: whether a symbolic link means what it points to.
  /// - Throws: `directoryMissing`; `notAnItem` for the root directory; what the kernel refuses.
  /// - Complexity: six system calls, and five more for each link.
  package static func resolve(_ path: String, followingLink: Bool) throws -> ItemLocation {
    let action = "find the item"
    return try reporting(action, path: path) {
      do {
        let place = try ItemPath.inDirectory(path, followingLink: followingLink)
        guard place.bytes.count > 1 else {
          throw FileCoordinationError(
            .notAnItem, action, path: path, reason: "the root directory is in no directory")
        }
        let parent = place.parent
        return ItemLocation(
          parent: parent.bytes.count > 1 ? parent.text : "", name: place.name.text)
      } catch let error as Errno where error == .noSuchFile {
        throw FileCoordinationError(
          .directoryMissing, action, path: ItemPath(path).parent.text,
          reason: "there is no such directory", remedy: "make it first",
          errorNumber: error.rawValue)
      }
    }
  }

  /// What is there now, the link itself if it is one; nil for nothing.
  package func status() throws(Errno) -> FileStatus? {
    do throws(Errno) {
      return try fileStatus(path)
    } catch {
      guard error == .noSuchFile || error == .notDirectory else { throw error }
      return nil
    }
  }

  /// Fails where another file system is mounted on the item: nothing can be put in its place.
  package func refuseMountPoint(_ action: String) throws {
    guard let item = try status() else { return }
    let directory = try fileStatus(parent + "/", followingLinks: true)
    guard item.device != directory.device else { return }
    throw FileCoordinationError(
      .notAnItem, action, path: path, reason: "another file system is mounted on it",
      remedy: "unmount it first, or name what is in it")
  }

  /// The directories that the item is in, the nearest first.
  var containing: [ItemLocation] {
    var directories: [ItemLocation] = []
    var path = parent[...]
    while let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) {
      directories.append(
        ItemLocation(
          parent: String(path[..<slash]), name: String(path[path.utf8.index(after: slash)...])))
      path = path[..<slash]
    }
    return directories
  }

  /// Whether the item is in the other, at any depth.
  package func isInside(_ other: ItemLocation) -> Bool {
    (parent + "/").utf8.starts(with: (other.path + "/").utf8)
  }
}

// File systems compare bytes, and `String` does not: two spellings of "é" are two files.
extension ItemLocation {
  package static func == (left: ItemLocation, right: ItemLocation) -> Bool {
    left.name.utf8.elementsEqual(right.name.utf8)
      && left.parent.utf8.elementsEqual(right.parent.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    for byte in path.utf8 { hasher.combine(byte) }
  }

  /// The one order in which several items are acquired: a directory, all that is in it, and then what
  /// comes after it. With what is in it anywhere else, two accesses could wait for each other.
  package static func precedes(_ left: ItemLocation, _ right: ItemLocation) -> Bool {
    let slash = UInt8(ascii: "/")
    return left.path.utf8.lexicographicallyPrecedes(right.path.utf8) {
      ($0 == slash ? 0 : $0) < ($1 == slash ? 0 : $1)
    }
  }
}
