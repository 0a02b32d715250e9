package import WormholeSystem

/// `quarantine/`: unreadable content, moved aside with its name and never deleted silently.
package enum Quarantine {
  package static let directory = "quarantine"

  /// Moves a file or directory aside, in one step.
  ///
  /// - Parameter name: With a slash at its end only a directory is moved (rename(2), ENOTDIR). For a
  ///   process whose lease may have been taken over: a value that was published meanwhile is a file,
  ///   and stays.
  /// - Returns: Its new path, relative to the container.
  @discardableResult
  package static func take(
    _ name: FileName, at source: Int32, root: ContainerRoot
  ) throws(Errno) -> String {
    let shown = name.text.hasSuffix("/") ? String(name.text.dropLast()) : name.text
    return try put(shown, root) { place, new throws(Errno) in
      try rename(name, at: source, to: new, at: place)
    }
  }

  /// Gives a file a second name in the quarantine.
  ///
  /// - Returns: That name, relative to the container.
  package static func link(
    _ name: String, at source: Int32, root: ContainerRoot
  ) throws(Errno) -> String {
    try put(name, root) { place, new throws(Errno) in
      try WormholeSystem.link(name, at: source, to: new, at: place)
    }
  }

  /// - Parameter step: Gives the entry a new name in the open directory of the quarantine.
  /// - Returns: Its new path, relative to the container.
  private static func put(
    _ name: String, _ root: ContainerRoot, _ step: (Int32, String) throws(Errno) -> Void
  ) throws(Errno) -> String {
    let handle = try root.currentHandle()
    let container = handle.descriptor.rawValue
    try root.makeDirectoryIfMissing(directory, at: container)
    // A link of that name is refused, so quarantined files stay in the container.
    let place = try FileDescriptor.openBeneath(directory, at: container, [.pathOnly, .directory])
    let new = beginning(of: name) + "-" + Nonce.next()
    try step(place.rawValue, new)
    let path = { root.path + "/" + directory + "/" + new }
    Diagnostics.note(
      .quarantine, at: .warning, "\(name) cannot be used, and was put aside as \(path())",
      in: root.path, fields: ["path": path(), "from": name])
    return directory + "/" + new
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
