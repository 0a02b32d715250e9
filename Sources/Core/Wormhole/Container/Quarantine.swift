package import WormholeSystem

/// `quarantine/`: unreadable content, moved aside with its name and never deleted silently.
package enum Quarantine {
  package static let directory = "quarantine"

  /// Moves a file or directory aside, in one step.
  package static func take(_ name: FileName, at source: Int32, root: ContainerRoot) throws(Errno) {
    let place = try place(for: name.text, root: root)
    try rename(name, at: source, to: place.name, at: place.directory.descriptor.rawValue)
    note(name.text, as: place.name, root)
  }

  private static func note(_ name: String, as quarantined: String, _ root: ContainerRoot) {
    let path = { root.path + "/" + directory + "/" + quarantined }
    Diagnostics.note(
      .quarantine, at: .warning, "\(name) cannot be used, and was put aside as \(path())",
      in: root.path, fields: ["path": path(), "from": name])
  }

  /// Moves a directory aside, in one step, but never a file.
  ///
  /// For a process whose lease may have been taken over: a value that was published meanwhile is a
  /// file, and stays (a name with a trailing slash must be a directory, rename(2), ENOTDIR).
  ///
  /// - Returns: Its new path, relative to the container.
  @discardableResult
  package static func takeDirectory(
    _ name: String, at source: Int32, root: ContainerRoot
  ) throws(Errno) -> String {
    let place = try place(for: name, root: root)
    try rename(name + "/", at: source, to: place.name, at: place.directory.descriptor.rawValue)
    note(name, as: place.name, root)
    return directory + "/" + place.name
  }

  /// Gives a file a second name in the quarantine.
  ///
  /// - Returns: That name, relative to the container.
  package static func link(
    _ name: String, at source: Int32, root: ContainerRoot
  ) throws(Errno) -> String {
    let place = try place(for: name, root: root)
    try WormholeSystem.link(
      name, at: source, to: place.name, at: place.directory.descriptor.rawValue)
    note(name, as: place.name, root)
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
      // The container has just been replaced, and with it the file to put aside.
      throw .staleHandle
    }
    let container = handle.descriptor.rawValue
    try root.makeDirectoryIfMissing(directory, at: container)
    // A link of that name is refused, so quarantined files stay in the container.
    let open = try FileDescriptor.openBeneath(directory, at: container, [.pathOnly, .directory])
    return (SharedDescriptor(open), beginning(of: name) + "-" + Nonce.next())
  }

  // Short enough for a nonce behind it: a name may have 255 bytes (NAME_MAX), perhaps in few
  // characters.
  private static func beginning(of name: String) -> String {
    var end = name.startIndex
    for index in name.unicodeScalars.indices {
      guard name.utf8.distance(from: name.startIndex, to: index) <= 100 else { break }
      end = index
    }
    return name.utf8.count <= 100 ? name : String(name[..<end])
  }
}
