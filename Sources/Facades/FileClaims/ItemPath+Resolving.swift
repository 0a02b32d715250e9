import AppGroup
package import SystemCalls

extension ItemPath {
  private static let mostLinks = 40

  /// Finds the item that a path means.
  ///
  /// - Parameter followingLink: whether a symbolic link means what it points to.
  /// - Throws: `directoryMissing`; `notAnItem` for the root directory; what the kernel refuses.
  /// - Complexity: six system calls, and five more for each link.
  package static func resolve(_ path: String, followingLink: Bool) throws -> ItemPath {
    let action = "find the item"
    return try reporting(action, path: path) {
      do {
        let place = try resolved(path, followingLink, takesMissing: false)
        guard place.bytes.count > 1 else {
          throw FileCoordinationError(
            .notAnItem, action, path: path, reason: "the root directory is in no directory")
        }
        return place
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
    try tolerating([.noSuchFile, .notDirectory], fileStatus(text))
  }

  /// The place that a path means, as the kernel has it. Directories that do not exist yet are taken as
  /// written.
  ///
  /// - Parameter followingLink: whether an item that is a symbolic link means what it points to.
  /// - Throws: `Errno` where a directory on the way may not be looked at; `.tooManyLinks`.
  package static func canonical(_ written: String, followingLink: Bool) throws(Errno) -> ItemPath {
    try resolved(written, followingLink, takesMissing: true)
  }

  /// - Parameter takesMissing: whether the item's directory need not exist; else `.noSuchFile` is thrown.
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
      guard
        let open = try tolerating(
          [.noSuchFile, .notDirectory], FileDescriptor.open(directory, [.pathOnly, .directory]))
      else { return nil }
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
    let status = try tolerating([.noSuchFile, .notDirectory, .accessDenied], fileStatus(path))
    return try status?.isSameFile(as: directory.status()) ?? false
  }

  private func linkTarget() throws(Errno) -> String? {
    // Not a link, or nothing at all (readlink(2)).
    try tolerating(
      [.invalidArgument, .noSuchFile, .notDirectory], SystemCalls.linkTarget(text))
  }

  private func resolving(_ name: FileName) -> ItemPath {
    switch name.text {
    case "", ".": self
    case "..": parent
    default: appending(name)
    }
  }
}

/// The file of an item at the beginning of a wait, to find it if it is moved meanwhile.
struct MovedItem {
  private let file: SharedDescriptor

  /// - Returns: nil when there is no item yet.
  init?(_ location: ItemPath) throws(Errno) {
    guard
      let file = try ifPresent(
        SharedDescriptor(FileDescriptor.open(location.text, [.pathOnly, .noFollow])))
    else { return nil }
    self.file = file
  }

  /// Where the item is now, if it is not at its place any more, and nothing else is.
  ///
  /// The kernel knows the present place of an open file (proc_pid_fd(5)). An item that was published
  /// again and then moved is not found, because that is a different file.
  func newPlace(of location: ItemPath) throws -> ItemPath? {
    guard try location.status() == nil else { return nil }
    let status = try file.descriptor.status()
    guard status.links > 0 else { return nil }
    let path = try linkTarget("/proc/self/fd/\(file.descriptor.rawValue)")
    // On its way out: an entry of a site is no item any more.
    guard !path.split(separator: "/").contains(where: { $0.hasPrefix(ItemSite.prefix) }) else {
      return nil
    }
    do {
      let place = try ItemPath.resolve(path, followingLink: false)
      let isThere = try place.status()?.isSameFile(as: status) == true
      return place != location && isThere ? place : nil
    } catch let error as FileCoordinationError where error.code == .directoryMissing {
      return nil
    }
  }
}
