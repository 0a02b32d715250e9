import SystemCalls

/// `quarantine/`: what could not be read, moved aside with its name, never deleted silently.
enum Quarantine {
  static let directory = "quarantine"

  /// Moves a file or directory aside, in one step.
  static func take(_ name: FileName, at source: Int32, root: ContainerRoot) throws(Errno) {
    let place = try place(for: name.text, root: root)
    try rename(name, at: source, to: place.name, at: place.directory.descriptor.rawValue)
  }

  /// Moves a directory aside, in one step, and nothing else.
  ///
  /// For a process that may have been overtaken: what was published meanwhile is a file, and stays
  /// (a name with a slash at its end is a directory's, rename(2), ENOTDIR).
  ///
  /// - Returns: where it is now, relative to the container.
  @discardableResult
  static func takeDirectory(
    _ name: String, at source: Int32, root: ContainerRoot
  ) throws(Errno) -> String {
    let place = try place(for: name, root: root)
    try rename(name + "/", at: source, to: place.name, at: place.directory.descriptor.rawValue)
    return directory + "/" + place.name
  }

  /// Gives a file a second name in the quarantine.
  ///
  /// - Returns: that name, relative to the container.
  static func link(
    _ name: String, at source: Int32, root: ContainerRoot
  ) throws(Errno) -> String {
    let place = try place(for: name, root: root)
    try SystemCalls.link(
      name, at: source, to: place.name, at: place.directory.descriptor.rawValue)
    return directory + "/" + place.name
  }

  private static func place(
    for name: String, root: ContainerRoot
  ) throws(Errno) -> (directory: SharedDescriptor, name: String) {
    let handle: ContainerRoot.Handle
    do {
      handle = try root.handle()
    } catch let error as Errno {
      throw error
    } catch {
      // The container has just been replaced: then so has what we would have put aside.
      throw .staleHandle
    }
    let container = handle.descriptor.rawValue
    try root.makeDirectoryIfMissing(directory, at: container)
    // A link of that name is refused: what is put aside stays in the container.
    let open = try FileDescriptor.openBeneath(directory, at: container, [.pathOnly, .directory])
    return (SharedDescriptor(open), beginning(of: name) + "-" + Nonce.next())
  }

  // Short enough for a nonce behind it: a name may have 255 bytes (NAME_MAX), and few characters.
  private static func beginning(of name: String) -> String {
    var end = name.startIndex
    for index in name.unicodeScalars.indices {
      guard name.utf8.distance(from: name.startIndex, to: index) <= 100 else { break }
      end = index
    }
    return name.utf8.count <= 100 ? name : String(name[..<end])
  }
}
