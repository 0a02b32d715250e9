import AppGroup
import SystemCalls

/// Where an item is: the real directory, and the name in it. Two processes that mean the same file by
/// different paths find the same location.
struct ItemLocation: Hashable, Sendable {
  /// The directory without any symbolic link in it; "" is the root.
  let parent: String
  let name: String

  var path: String { parent + "/" + name }

  private static let mostLinks = 40

  /// Finds the item that a path means.
  ///
  /// - Parameter followingLink: whether a symbolic link means what it points to.
  /// - Throws: `directoryMissing`; `notAnItem` for the root directory; what the kernel refuses.
  /// - Complexity: six system calls, and five more for each link.
  static func resolve(_ path: String, followingLink: Bool) throws -> ItemLocation {
    let action = "find the item"
    return try reporting(action, path: path) {
      var path = path
      for _ in 0..<mostLinks {
        let location = try parentResolved(path)
        guard followingLink, let target = try location.linkTarget() else { return location }
        path = target.hasPrefix("/") ? target : location.parent + "/" + target
      }
      throw Errno.tooManyLinks
    }
  }

  private static func parentResolved(_ path: String) throws -> ItemLocation {
    var end = path[...]
    // Bytes: a combining mark after the slash would hide it from `Character`.
    let separator = UInt8(ascii: "/")
    while end.utf8.count > 1, end.utf8.last == separator {
      end = end[..<end.utf8.index(before: end.endIndex)]
    }
    let slash = end.utf8.lastIndex(of: separator)
    let last = slash.map { String(end[end.utf8.index(after: $0)...]) } ?? String(end)
    guard ["", ".", ".."].contains(last) else {
      let parent = slash.map { $0 == end.startIndex ? "/" : String(end[..<$0]) } ?? "."
      return ItemLocation(parent: try canonical(parent), name: last)
    }
    let whole = try canonical(String(end))
    guard let slash = whole.utf8.lastIndex(of: separator) else {
      throw FileCoordinationError(
        .notAnItem, "find the item", path: path, reason: "the root directory is in no directory")
    }
    return ItemLocation(
      parent: String(whole[..<slash]), name: String(whole[whole.utf8.index(after: slash)...]))
  }

  // The kernel's own idea of where a directory is (proc_pid_fd(5)).
  private static func canonical(_ directory: String) throws -> String {
    for _ in 0..<mostLinks {
      let open: FileDescriptor
      do throws(Errno) {
        open = try FileDescriptor.open(directory, [.pathOnly, .directory])
      } catch {
        guard error == .noSuchFile || error == .notDirectory else { throw error }
        break
      }
      let door = "/proc/self/fd/\(open.rawValue)"
      let path = try SystemCalls.linkTarget(door)
      // Replaced between the two calls: then it is elsewhere by now, or nowhere.
      guard try open.status().links > 0, !isPutAway(path) else { continue }
      guard try isSame(path, open) else {
        guard try SystemCalls.linkTarget(door) == path else { continue }
        // Its name means something else here, or nothing: it was reached through a door to another
        // mount namespace. What was given is a name for it, if not the only one.
        return directory.hasPrefix("/") ? directory : "/proc/self/cwd/" + directory
      }
      return path == "/" ? "" : path
    }
    throw FileCoordinationError(
      .directoryMissing, "find the item", path: directory, reason: "there is no such directory",
      remedy: "make it first", errorNumber: Errno.noSuchFile.rawValue)
  }

  /// Whether something is where coordination puts what it has replaced or removed, on its way out.
  static func isPutAway(_ path: String) -> Bool {
    let names = path.utf8.split(separator: UInt8(ascii: "/"))
    return zip(names, names.dropFirst()).contains { site, place in
      site.starts(with: ItemSite.prefix.utf8)
        && (place.elementsEqual(LeaseLayout.passing.held.utf8)
          || place.starts(with: LeaseSite.brokenPrefix.utf8)
          || place.starts(with: ItemSite.trashPrefix.utf8))
    }
  }

  private static func isSame(
    _ path: String, _ directory: borrowing FileDescriptor
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      return try fileStatus(path).isSameFile(as: directory.status())
    } catch {
      guard [.noSuchFile, .notDirectory, .accessDenied].contains(error) else { throw error }
      return false
    }
  }

  private func linkTarget() throws(Errno) -> String? {
    do throws(Errno) {
      return try SystemCalls.linkTarget(path)
    } catch {
      // Not a link, or nothing at all (readlink(2)).
      guard error == .invalidArgument || error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// What is there now, the link itself if it is one; nil for nothing.
  func status() throws(Errno) -> FileStatus? {
    do throws(Errno) {
      return try fileStatus(path)
    } catch {
      guard error == .noSuchFile || error == .notDirectory else { throw error }
      return nil
    }
  }

  /// Fails where another file system is mounted on the item: nothing can be put in its place.
  func refuseMountPoint(_ action: String) throws {
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
  func isInside(_ other: ItemLocation) -> Bool {
    (parent + "/").utf8.starts(with: (other.path + "/").utf8)
  }
}

// File systems compare bytes, and `String` does not: two spellings of "é" are two files.
extension ItemLocation {
  static func == (left: ItemLocation, right: ItemLocation) -> Bool {
    left.name.utf8.elementsEqual(right.name.utf8)
      && left.parent.utf8.elementsEqual(right.parent.utf8)
  }

  func hash(into hasher: inout Hasher) {
    for byte in path.utf8 { hasher.combine(byte) }
  }

  /// The one order in which several items are acquired: a directory, all that is in it, and then what
  /// comes after it. With what is in it anywhere else, two accesses could wait for each other.
  static func precedes(_ left: ItemLocation, _ right: ItemLocation) -> Bool {
    let slash = UInt8(ascii: "/")
    return left.path.utf8.lexicographicallyPrecedes(right.path.utf8) {
      ($0 == slash ? 0 : $0) < ($1 == slash ? 0 : $1)
    }
  }
}
