import SystemCalls

/// `quarantine/`: what could not be read, moved aside with its name, never deleted silently.
enum Quarantine {
  static let directory = "quarantine"

  /// Moves a file or directory aside, in one step.
  static func take(_ name: String, at source: Int32, root: ContainerRoot) throws(Errno) {
    let place = try place(for: name, root: root)
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
    return (SharedDescriptor(open), String(name.prefix(100)) + "-" + Nonce.next())
  }
}
