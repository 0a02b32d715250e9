import Wormhole
package import WormholeSystem

/// An item's place: an absolute path without symbolic links, "." and "..", so two processes that
/// name the same file by different paths find the same place. Paths are compared byte for byte: two
/// that Swift's strings call equal ("é" composed and decomposed) are different files.
package struct ItemPath: Hashable, Sendable {
  package let bytes: [UInt8]
  /// The path as text; invalid UTF-8 is repaired, and the text then names nothing.
  package let text: String

  package init(_ text: String) {
    bytes = Array(text.utf8)
    self.text = text
  }

  package static func == (left: ItemPath, right: ItemPath) -> Bool { left.bytes == right.bytes }

  package func hash(into hasher: inout Hasher) {
    // All at once: the array itself does it byte by byte.
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
  }

  private init(bytes: [UInt8]) {
    self.bytes = bytes
    text = String(decoding: bytes, as: UTF8.self)
  }

  static let slash = UInt8(ascii: "/")
  static let dot = UInt8(ascii: ".")

  /// The directory that contains the item; the root contains itself.
  package var parent: ItemPath {
    let end = bytes.lastIndex(of: Self.slash) ?? 0
    return end == 0 ? ItemPath("/") : ItemPath(bytes: Array(bytes[..<end]))
  }

  /// All directories above, nearest first and the root last.
  package var ancestors: [ItemPath] { lineage(having: "", levels: 1...) { _ in true } }

  /// This path and all directories above that contain an entry of a name, nearest first.
  ///
  /// - Parameters:
  ///   - levels: the levels to look at; 0 is this path.
  ///   - isThere: whether the entry exists at a path.
  /// - Complexity: one call of `isThere` for each.
  package func lineage(
    having entry: String, levels: some RangeExpression<Int> = 0...,
    _ isThere: (ComposedPath) -> Bool
  ) -> [ItemPath] {
    var path = ComposedPath(pathBytes: bytes)
    var found: [ItemPath] = []
    var (level, end) = (0, bytes.count > 1 ? bytes.count : 0)
    while true {
      if levels.contains(level) {
        path.compose(bytes[..<end], entry)
        if isThere(path) { found.append(ItemPath(bytes: Array(bytes[..<max(end, 1)]))) }
      }
      guard end > 0 else { return found }
      (level, end) = (level + 1, start(ofNameTo: end) - 1)
    }
  }

  /// The directories above that may have a site, nearest first; the root has none.
  ///
  /// - Complexity: one system call for each directory above.
  var coordinatedAncestors: [ItemPath] {
    // A site's name is text.
    let exact = bytes.allSatisfy { $0 < 0x80 } ? self : ItemPath(text)
    var found: [ItemPath] = []
    var path = ComposedPath(pathBytes: exact.bytes)
    var end = exact.nameStart - 1
    while end > 0 {
      let start = exact.start(ofNameTo: end)
      path.compose(exact.bytes[..<start], ItemSite.prefix, exact.bytes[start..<end])
      // Fails for a name that is too long for the prefix, whose site has a shorter one.
      let mayExist = (try? exists(path, at: Directory.current)) ?? true
      if mayExist { found.append(ItemPath(bytes: Array(exact.bytes[..<end]))) }
      end = start - 1
    }
    return found
  }

  package var name: FileName { FileName(bytes: Array(bytes[nameStart...])) }

  var nameStart: Int { start(ofNameTo: bytes.count) }

  private func start(ofNameTo end: Int) -> Int {
    bytes[..<end].lastIndex(of: Self.slash).map { $0 + 1 } ?? 0
  }

  /// The name with an ending, cut to a file name's maximum length.
  func name(ending: String) -> String {
    var name = name.text
    while name.utf8.count + ending.utf8.count > 255 { name.removeLast() }
    return name + ending
  }

  package func appending(_ name: FileName) -> ItemPath {
    ItemPath(bytes: (bytes.count == 1 ? [] : bytes) + [Self.slash] + name.bytes)
  }

  /// Whether the other path lies in this directory, at any depth.
  package func contains(_ other: ItemPath) -> Bool {
    if bytes.count == 1 { return other.bytes.count > 1 }
    return other.bytes.count > bytes.count && other.bytes[bytes.count] == Self.slash
      && other.bytes.starts(with: bytes)
  }

  /// The names on the way from this directory to the other path; nil if that is not inside.
  package func components(to other: ItemPath) -> [FileName]? {
    guard contains(other) else { return nil }
    return other.bytes[bytes.count...].split(separator: Self.slash).map {
      FileName(bytes: Array($0))
    }
  }

  /// The new place if `old`, which is this path or contains it, was moved; nil if it is elsewhere.
  package func moved(from old: ItemPath, to new: ItemPath) -> ItemPath? {
    if self == old { return new }
    guard old.contains(self) else { return nil }
    let rest = old.bytes.count == 1 ? bytes[...] : bytes[old.bytes.count...]
    return ItemPath(bytes: (new.bytes.count == 1 ? [] : new.bytes) + rest)
  }

  /// The order in which several items are acquired: a directory, all its contents, then what
  /// follows. If its contents were elsewhere in the order, two accesses could wait for each other.
  package static func precedes(_ left: ItemPath, _ right: ItemPath) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes) {
      ($0 == slash ? 0 : $0) < ($1 == slash ? 0 : $1)
    }
  }
}

extension ItemPath {
  private static let mostLinks = 40

  /// Finds the item that a path names.
  ///
  /// - Parameter followingLink: whether a symbolic link stands for its target.
  /// - Returns: its place, and the item itself if it was opened for that.
  /// - Throws: `directoryMissing`; `notAnItem` for the root directory; errors of the kernel.
  /// - Complexity: two system calls for an existing item by a path without links; otherwise eight,
  ///   and five more for each link.
  package static func find(
    _ path: String, followingLink: Bool
  ) throws -> (place: ItemPath, item: SharedDescriptor?) {
    let action = "find the item"
    return try reporting(action, path: path) {
      do {
        if let found = asWritten(path) { return found }
        let place = try resolved(path, followingLink, takesMissing: false)
        guard place.bytes.count > 1 else {
          throw WormholeError(
            .notAnItem, action, path: path, reason: "the root directory is in no directory")
        }
        return (place, nil)
      } catch let error as Errno where error == .noSuchFile {
        throw WormholeError(
          .directoryMissing, action, path: ItemPath(path).parent.text,
          reason: "there is no such directory", remedy: "make it first",
          errorNumber: error.rawValue)
      }
    }
  }

  /// The entry's current status, for a link that of the link itself; nil if there is no entry.
  package func status() throws(Errno) -> FileStatus? {
    try tolerating([.noSuchFile, .notDirectory], fileStatus(text))
  }

  /// The kernel's canonical path for a path. Directories that do not exist yet are kept as written.
  ///
  /// - Parameter followingLink: whether an item that is a symbolic link stands for its target.
  /// - Throws: `Errno` if a directory on the way may not be looked at; `.tooManyLinks`.
  package static func canonical(_ written: String, followingLink: Bool) throws(Errno) -> ItemPath {
    if let found = asWritten(written) { return found.place }
    return try resolved(written, followingLink, takesMissing: true)
  }

  /// - Parameter takesMissing: whether the item's directory may be missing; else `.noSuchFile`.
  private static func resolved(
    _ written: String, _ followingLink: Bool, takesMissing: Bool
  ) throws(Errno) -> ItemPath {
    var written = written
    for _ in 0..<mostLinks {
      let path = try withoutLinksAbove(written, takesMissing)
      // Nil for a file of another kind, or no entry (readlink(2)).
      guard followingLink,
        let target = try tolerating(
          [.invalidArgument, .noSuchFile, .notDirectory], linkTarget(path.text))
      else { return path }
      written = target.hasPrefix("/") ? target : path.parent.text + "/" + target
    }
    throw .tooManyLinks
  }

  /// The place of an existing item, if its path is the kernel's own: it leads there without a link.
  private static func asWritten(_ written: String) -> (place: ItemPath, item: SharedDescriptor?)? {
    let place = ItemPath(written)
    guard place.isPlain else { return nil }
    do throws(Errno) {
      let item = SharedDescriptor(try FileDescriptor.openWithoutLinks(written, .pathOnly))
      return (place, item)
    } catch {
      // The longer way finds the item, or the reason.
      return nil
    }
  }

  /// Whether an absolute path has only names, and none of coordination's own: see `isPutAway`.
  private var isPlain: Bool {
    let (slash, dot) = (Self.slash, Self.dot)
    guard bytes.first == slash, bytes.last != slash else { return false }
    var last: (UInt8, UInt8) = (0, 0)
    for byte in bytes {
      if last.1 == slash, byte == slash { return false }
      // "/./", "/..", "/.coordination-"; other hidden names with a "c" may as well go the longer way.
      if last == (slash, dot), [slash, dot, UInt8(ascii: "c")].contains(byte) { return false }
      last = (last.1, byte)
    }
    return last != (slash, dot)
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
      // Only the kernel knows what "." and ".." mean.
      let isWhole = ["", ".", ".."].contains(name.text)
      if let directory = try realDirectory(isWhole ? rest : above) {
        return ((isWhole ? [] : [name]) + missing).reduce(directory) { $0.resolving($1) }
      }
      guard takesMissing, above != rest else { throw .noSuchFile }
      missing.insert(name, at: 0)
      rest = above
    }
  }

  // The kernel's path for a directory (proc_pid_fd(5)); nil if it has none.
  private static func realDirectory(_ written: ArraySlice<UInt8>) throws(Errno) -> ItemPath? {
    let directory = String(decoding: written, as: UTF8.self)
    for _ in 0..<mostLinks {
      guard
        let open = try tolerating(
          [.noSuchFile, .notDirectory], FileDescriptor.open(directory, [.pathOnly, .directory]))
      else { return nil }
      let door = "/proc/self/fd/\(open.rawValue)"
      // Nil if the target is not valid UTF-8.
      let path = try tolerating([.illegalByteSequence], linkTarget(door))
      let status = try open.status()
      // Replaced between the two calls: it was moved or removed.
      guard status.links > 0, path.map({ ItemPath($0).isPutAway }) != true else { continue }
      let named = try path.flatMap { path throws(Errno) in
        try tolerating([.noSuchFile, .notDirectory, .accessDenied], fileStatus(path))
      }
      guard let path, named?.isSameFile(as: status) == true else {
        guard try tolerating([.illegalByteSequence], linkTarget(door)) == path else { continue }
        // Its name means something else here, or nothing: it was reached through a door to another
        // mount namespace. The given path is a name for it, if not the only one.
        return ItemPath(directory.hasPrefix("/") ? directory : "/proc/self/cwd/" + directory)
      }
      return ItemPath(path)
    }
    return nil
  }

  /// Whether coordination keeps replaced or removed items here until it deletes them.
  var isPutAway: Bool {
    let names = bytes.split(separator: Self.slash)
    return zip(names, names.dropFirst()).contains { site, place in
      site.starts(with: ItemSite.prefix.utf8)
        && (place.elementsEqual(LeaseLayout.passing.held.utf8)
          || place.starts(with: ItemHome.trashPrefix.utf8))
    }
  }

  /// Whether it is a site, or an entry of one.
  var isInSite: Bool {
    bytes.split(separator: Self.slash).contains { $0.starts(with: ItemSite.prefix.utf8) }
  }

  private func resolving(_ name: FileName) -> ItemPath {
    switch name.text {
    case "", ".": self
    case "..": parent
    default: appending(name)
    }
  }

  func openParent() throws(Errno) -> FileDescriptor {
    try Self.openDirectory(parent.text + "/", [.pathOnly, .directory])
  }

  /// Opens a directory by a path that had no link when it was found; another user may have planted
  /// one since. A door to another mount namespace is one of the kernel's own.
  static func openDirectory(
    _ path: String, _ options: OpenOptions
  ) throws(Errno) -> FileDescriptor {
    if ForeignLinks.areRefused, !path.hasPrefix("/proc/"),
      let opened = try tolerating(
        [.noFunction, .notPermitted], FileDescriptor.openWithoutLinks(path, options))
    {
      return opened
    }
    return try FileDescriptor.open(path, options)
  }

  /// Opens the item at the beginning of a wait, to find it if it is moved meanwhile.
  ///
  /// - Returns: nil if there is no item yet, or this user cannot reach it; then it is not followed.
  func openToFollow() throws(Errno) -> SharedDescriptor? {
    try tolerating(
      [.noSuchFile, .accessDenied, .notDirectory],
      SharedDescriptor(FileDescriptor.open(text, [.pathOnly, .noFollow])))
  }

  /// The current place of an item that was opened here, if this place is now empty.
  ///
  /// The kernel knows the current place of an open file (proc_pid_fd(5)). An item that was
  /// published again and then moved is not found, because that is a different file.
  func newPlace(of item: SharedDescriptor) throws -> ItemPath? {
    guard try status() == nil else { return nil }
    let status = try item.descriptor.status()
    guard status.links > 0 else { return nil }
    // Nil: its name is no text, or its path is longer than any that can be used.
    let found = try tolerating(
      [.illegalByteSequence, .fileNameTooLong],
      linkTarget("/proc/self/fd/\(item.descriptor.rawValue)"))
    guard let path = found else { return nil }
    // It is being removed: an entry of a site is no longer an item.
    guard !ItemPath(path).isInSite else { return nil }
    do {
      let place = try ItemPath.find(path, followingLink: false).place
      let isThere = try place.status()?.isSameFile(as: status) == true
      return place != self && isThere ? place : nil
    } catch let error as WormholeError
      where [.directoryMissing, .permissionDenied].contains(error.code)
    {
      // This user cannot reach it.
      return nil
    } catch let error as Errno where error == .accessDenied {
      return nil
    }
  }
}
