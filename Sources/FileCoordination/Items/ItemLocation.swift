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
    while end.count > 1, end.last == "/" { end.removeLast() }
    let slash = end.lastIndex(of: "/")
    let last = slash.map { String(end[end.index(after: $0)...]) } ?? String(end)
    guard ["", ".", ".."].contains(last) else {
      let parent = slash.map { $0 == end.startIndex ? "/" : String(end[..<$0]) } ?? "."
      return ItemLocation(parent: try canonical(parent), name: last)
    }
    let whole = try canonical(String(end))
    guard let slash = whole.lastIndex(of: "/") else {
      throw FileCoordinationError(
        .notAnItem, "find the item", path: path, reason: "the root directory is in no directory")
    }
    return ItemLocation(
      parent: String(whole[..<slash]), name: String(whole[whole.index(after: slash)...]))
  }

  // The kernel's own idea of where a directory is (proc_pid_fd(5)).
  private static func canonical(_ directory: String) throws -> String {
    let open: FileDescriptor
    do throws(Errno) {
      open = try FileDescriptor.open(directory, [.pathOnly, .directory])
    } catch {
      guard error == .noSuchFile || error == .notDirectory else { throw error }
      throw FileCoordinationError(
        .directoryMissing, "find the item", path: directory, reason: "there is no such directory",
        remedy: "make it first", errorNumber: error.rawValue)
    }
    let path = try SystemCalls.linkTarget("/proc/self/fd/\(open.rawValue)")
    guard try isSame(path, open) else {
      // Its name means something else here, or nothing: it was reached through a door to another
      // mount namespace. What was given is a name for it, if not the only one.
      return directory.hasPrefix("/") ? directory : "/proc/self/cwd/" + directory
    }
    return path == "/" ? "" : path
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
    while let slash = path.lastIndex(of: "/") {
      directories.append(
        ItemLocation(
          parent: String(path[..<slash]), name: String(path[path.index(after: slash)...])))
      path = path[..<slash]
    }
    return directories
  }

  /// Whether the item is in the other, at any depth.
  func isInside(_ other: ItemLocation) -> Bool { (parent + "/").hasPrefix(other.path + "/") }
}
