import WormholeSystem

/// A container's directory that contains files instead of names: an inbox, or archives of messages.
///
/// Each call begins at the container's open directory. So in a container of several users, a link
/// on the way, which another member can plant at any time, only makes the call fail.
package struct ContainerDirectory: Sendable {
  /// Nil for a directory that a program has chosen elsewhere.
  private let root: ContainerRoot?
  /// The path from the container; from the file system's root if it is elsewhere.
  private let inside: String
  package let path: String
  private let access: ContainerAccess

  /// - Parameter inside: The path from the container, without "." and ".."; "" for the container
  ///   itself.
  package init(_ inside: String, in container: SharedContainer) {
    root = container.root
    access = container.root.access
    self.inside = inside
    path = container.root.path + (inside.isEmpty ? "" : "/" + inside)
  }

  /// A directory that a program has chosen, and whose path it trusts.
  package init(elsewhere path: String) {
    root = nil
    access = .owner
    inside = path
    self.path = path
  }

  /// Gives a closure the descriptor at which `inside` begins. It stays open until the closure
  /// returns, even if another thread finds that the container was replaced.
  private func atOrigin<Result: ~Copyable>(
    _ body: (Int32) throws -> Result
  ) throws -> Result {
    guard let root else { return try body(Directory.current) }
    let handle = try root.handle()
    return try body(handle.descriptor.rawValue)
  }

  private func entry(_ name: String) -> String { inside.isEmpty ? name : inside + "/" + name }

  private func open(_ path: String, _ options: OpenOptions) throws -> FileDescriptor {
    try atOrigin {
      root == nil
        ? try FileDescriptor.open(path, at: $0, options)
        : try FileDescriptor.openBeneath(path, at: $0, options)
    }
  }

  private func open() throws -> FileDescriptor {
    try open(inside.isEmpty ? "." : inside, [.readOnly, .directory])
  }

  // MARK: The directory

  /// Whether it exists; true if that cannot be determined.
  package var mayExist: Bool {
    // The caller's next call reports the fault.
    (try? inside.isEmpty || atOrigin { try exists(inside, at: $0) }) ?? true
  }

  /// Creates it and those above it, with the container's mode; succeeds if it exists.
  package func make() throws {
    try reporting("make the directory", path: path) {
      guard let root else {
        return try access.makeDirectoryIfMissing(inside, at: Directory.current)
      }
      try root.changing { try makeEach() }
      // Something else may have its name.
      _ = try open()
    }
  }

  private func makeEach() throws {
    try atOrigin { origin in
      var made = ""
      for component in inside.split(separator: "/") {
        made += (made.isEmpty ? "" : "/") + component
        try access.makeDirectoryIfMissing(made, at: origin)
      }
    }
  }

  // MARK: Its entries

  /// The names of the entries; none if the directory is missing.
  package func names() throws -> [String] { try entries().map(\.name.text) }

  private func entries() throws -> [FileDescriptor.Entry] {
    try reporting("list the directory", path: path) {
      do {
        return try open().remainingEntries()
      } catch let error as Errno where error == .noSuchFile {
        return []
      }
    }
  }

  /// Removes an entry with everything below it; a missing one counts as removed.
  package func remove(_ name: String) throws { try remove(FileName(name)) }

  private func remove(_ name: FileName) throws {
    try reporting("remove the entry", path: path + "/" + name.text) {
      do {
        let directory = try open()
        try TreeRemoval().remove(name, at: directory.rawValue)
      } catch let error as Errno where error == .noSuchFile {
        return
      } catch let error as TreeError {
        guard case .refused(let cause) = error.reason else { throw Errno.deviceBusy }
        throw cause
      }
    }
  }

  /// Gives a file a second name in it.
  package func link(_ file: String, as name: String) throws {
    try reporting("link the file", path: path + "/" + name) {
      let directory = try open()
      // A link on the way to a file of the container leads nowhere, either.
      guard let root, file.hasPrefix(root.path + "/") else {
        return try WormholeSystem.link(
          file, at: Directory.current, to: name, at: directory.rawValue)
      }
      try atOrigin {
        try WormholeSystem.link(
          String(file.dropFirst(root.path.count + 1)), at: $0, to: name, at: directory.rawValue)
      }
    }
  }

  /// Whether a link that failed may succeed later. Only faults of the file or of its file system
  /// are permanent; the directory may lack space or a permission, or something may be in its way.
  package static func mayLinkLater(after error: any Error) -> Bool {
    let lasting: [Errno] = [
      .noSuchFile, .fileNameTooLong, .invalidArgument, .illegalByteSequence, .notPermitted,
      .unsupported, .noFunction, .crossesDevices, .tooManyNames,
    ]
    return !lasting.contains { $0.rawValue == (error as? WormholeError)?.errorNumber }
  }

  /// Returns the version of a regular file; as `ForeignFile.version`.
  package func version(of name: String) throws -> Version? {
    try atOrigin { try ForeignFile.version(entry(name), at: $0, path: path + "/" + name) }
  }

  /// Returns the content of a regular file with its version; as `ForeignFile.content`.
  package func content(
    of name: String, maximumBytes: Int
  ) throws -> (bytes: [UInt8], version: Version) {
    try ForeignFile.content(path + "/" + name, maximumBytes: maximumBytes) {
      try open(entry(name), [.readOnly, .noFollow, .nonBlocking])
    }
  }

  /// Lends an absolute path of an entry. In a container of several users it leads through the open
  /// directory, because its own path may lead elsewhere a moment later.
  package func withPath<Result>(
    of name: String, _ body: (String) throws -> Result
  ) throws -> Result {
    guard access == .group else { return try body(path + "/" + name) }
    let directory = try reporting("open the directory", path: path) { try open() }
    return try body("/proc/self/fd/\(directory.rawValue)/\(name)")
  }
}
