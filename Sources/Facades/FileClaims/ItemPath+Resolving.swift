import AppGroup
package import SystemCalls

extension ItemPath {
  private static let mostLinks = 40

  /// The place that a path means, as the kernel has it. Directories that do not exist yet are taken as
  /// written.
  ///
  /// - Parameter followingLink: whether an item that is a symbolic link means what it points to.
  /// - Throws: `Errno` where a directory on the way may not be looked at; `.tooManyLinks`.
  package static func canonical(_ written: String, followingLink: Bool) throws(Errno) -> ItemPath {
    try resolved(written, followingLink, takesMissing: true)
  }

  /// The same for an item whose directory must exist.
  ///
  /// - Throws: `.noSuchFile` when it does not.
  /// - Complexity: six system calls, and five more for each link.
  static func inDirectory(_ written: String, followingLink: Bool) throws(Errno) -> ItemPath {
    try resolved(written, followingLink, takesMissing: false)
  }

  private static func resolved(
    _ written: String, _ followingLink: Bool, takesMissing: Bool
  ) throws(Errno) -> ItemPath {
    var written = written
    for _ in 0..<mostLinks {
      let path = try withoutLinksAbove(written, takesMissing)
      guard followingLink, let target = try path.linkTarget() else { return path }
      written = target.hasPrefix("/") ? target : path.parent.text + "/" + target
    }
    throw .tooManyLinks
  }

  private static func withoutLinksAbove(
    _ written: String, _ takesMissing: Bool
  ) throws(Errno) -> ItemPath {
    // Bytes: a combining mark after the slash would hide it from `Character`.
    var rest = Array(written.utf8)[...]
    var missing: [FileName] = []
    while true {
      while rest.count > 1, rest.last == slash { rest.removeLast() }
      let end = rest.lastIndex(of: slash)
      let name = FileName(bytes: Array(rest[(end.map { $0 + 1 } ?? rest.startIndex)...]))
      let above = end.map { $0 == rest.startIndex ? rest[...$0] : rest[..<$0] } ?? [dot]
      // What "." and ".." mean only the kernel knows.
      let isWhole = ["", ".", ".."].contains(name.text)
      if let directory = try realDirectory(isWhole ? rest : above) {
        return ((isWhole ? [] : [name]) + missing).reduce(directory) { $0.resolving($1) }
      }
      guard takesMissing, above != rest else { throw .noSuchFile }
      missing.insert(name, at: 0)
      rest = above
    }
  }

  // The kernel's own idea of where a directory is (proc_pid_fd(5)); nil when there is none.
  private static func realDirectory(_ written: ArraySlice<UInt8>) throws(Errno) -> ItemPath? {
    let directory = String(decoding: written, as: UTF8.self)
    for _ in 0..<mostLinks {
      let open: FileDescriptor
      do throws(Errno) {
        open = try FileDescriptor.open(directory, [.pathOnly, .directory])
      } catch {
        guard error == .noSuchFile || error == .notDirectory else { throw error }
        return nil
      }
      let door = "/proc/self/fd/\(open.rawValue)"
      let path = try SystemCalls.linkTarget(door)
      // Replaced between the two calls: then it is elsewhere by now, or nowhere.
      guard try open.status().links > 0, !ItemPath(path).isPutAway else { continue }
      guard try isSame(path, open) else {
        guard try SystemCalls.linkTarget(door) == path else { continue }
        // Its name means something else here, or nothing: it was reached through a door to another
        // mount namespace. The path that was given is a name for it, if not the only one.
        return ItemPath(directory.hasPrefix("/") ? directory : "/proc/self/cwd/" + directory)
      }
      return ItemPath(path)
    }
    return nil
  }

  /// Whether this is where coordination puts what it has replaced or removed, on its way out.
  var isPutAway: Bool {
    let names = bytes.split(separator: Self.slash)
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
      return try SystemCalls.linkTarget(text)
    } catch {
      // Not a link, or nothing at all (readlink(2)).
      guard [.invalidArgument, .noSuchFile, .notDirectory].contains(error) else { throw error }
      return nil
    }
  }

  private func resolving(_ name: FileName) -> ItemPath {
    switch name.text {
    case "", ".": self
    case "..": parent
    default: appending(name)
    }
  }
}
