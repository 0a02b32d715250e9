package import WormholeSystem

/// The directory of one identifier. Each has its own, so that the kernel wakes only its watchers.
package final class NamedDirectory: Sendable {
  package let root: ContainerRoot
  package let kind: NameKind
  package let identifier: String
  let name: EncodedName
  package let relativePath: String
  private let heldPath: String

  package static let identifierFile = "identifier"
  /// The beginning of the names of files with the output of a peer's program: see `LaunchBook`.
  package static let startPrefix = "start-"

  package init(root: ContainerRoot, kind: NameKind, identifier: String) {
    self.root = root
    self.kind = kind
    self.identifier = identifier
    name = EncodedName(identifier)
    relativePath = kind.path + "/" + name.component
    heldPath = relativePath + "/" + LeaseSite.held
  }

  package var path: String { root.path + "/" + relativePath }

  /// - Returns: nil if there is none.
  package func open(_ options: OpenOptions = [.pathOnly, .directory]) throws -> FileDescriptor? {
    for attempt in 0..<2 {
      let handle = try root.handle()
      do {
        let directory = try FileDescriptor.openBeneath(
          relativePath, at: handle.descriptor.rawValue, options)
        if name.longIdentifier != nil { try verify(directory) }
        return directory
      } catch let error as Errno where error == .noSuchFile {
        // The whole container may have been replaced less than a second ago.
        let fresh = try root.refreshed(handle)
        if attempt > 0 || fresh === handle { return nil }
      }
    }
    return nil
  }

  /// Opens the directory and passes it to a closure. Starts again if a sweep has removed the
  /// directory meanwhile, because nothing is found in a removed directory (ENOENT).
  ///
  /// - Returns: nil if there is none.
  package func withOpenDirectory<Result>(
    _ options: OpenOptions = [.pathOnly, .directory],
    _ body: (borrowing FileDescriptor) throws -> Result
  ) throws -> Result? {
    for _ in 0..<renameRaceLimit {
      guard let directory = try open(options) else { return nil }
      do {
        return try body(directory)
      } catch let error as Errno where error == .noSuchFile {
        guard try directory.status().links == 0 else { throw error }
      }
    }
    throw Errno.noSuchFile
  }

  /// Returns the place of the directory's lease. One call opens an existing lease, which is enough
  /// to change a value. If there is none, or the name is long, the directory is opened instead.
  ///
  /// - Parameter file: the file that the lease protects, for messages.
  package func leaseSite(protecting file: String) throws -> LeaseSite {
    try root.changing { try site(protecting: file) }
  }

  private func site(protecting file: String) throws -> LeaseSite {
    if name.longIdentifier == nil {
      let handle = try root.handle()
      let container = handle.descriptor.rawValue
      let held = try ifPresent(
        HeldDirectory(
          FileDescriptor.openBeneath(heldPath, at: container, [.readOnly, .directory])))
      if let held { return LeaseSite(held: held, home: root, path: self.path + "/" + file) }
    }
    return LeaseSite(
      directory: SharedDescriptor(try openOrMake()), home: root, path: self.path + "/" + file)
  }

  /// Flushes the directories above to the disk: they may have been made without that.
  package func synchronizeNames() throws {
    let handle = try root.handle()
    try handle.synchronizedNames.synchronize(kind, in: handle.descriptor)
  }

  package func openOrMake() throws -> FileDescriptor {
    try root.changing {
      for _ in 0..<renameRaceLimit {
        if let directory = try open() { return directory }
        try make()
      }
      throw Errno.noSuchFile
    }
  }

  /// - Returns: Whether it is gone.
  package func removeIfEmpty() throws -> Bool {
    let handle = try root.handle()
    let container = handle.descriptor.rawValue
    do throws(Errno) {
      if name.longIdentifier != nil {
        try removeFile(relativePath + "/" + Self.identifierFile, at: container)
      }
      try removeDirectory(relativePath, at: container)
      return true
    } catch {
      switch error {
      case .noSuchFile: return true
      case .directoryNotEmpty, .alreadyExists:
        // Another process has arrived meanwhile and needs the file with the identifier.
        if name.longIdentifier != nil { try make() }
        return false
      default: throw error
      }
    }
  }

  /// Watches the directory that the path names, even if it is created later.
  ///
  /// - Parameters:
  ///   - events: Of its entries; its own end is watched in any case.
  ///   - showsInFiles: See `ChangeMonitor.watch`.
  package func watch(
    for events: WatchEvents = .content, showsInFiles: Bool = false,
    by monitor: ChangeMonitor = .shared,
    _ signal: @escaping @Sendable () -> Void
  ) throws -> Watch {
    _ = try root.handle()
    return root.watch(
      path, below: kind.parents(in: root), events: events, readsNames: false,
      showsInFiles: showsInFiles, by: monitor
    ) { _ in signal() }
  }

  /// Watches a directory in it; neither need exist.
  package func watch(
    part: String, _ events: WatchEvents = .content,
    pollInterval: Duration = ChangeMonitor.pollInterval,
    _ hear: @escaping @Sendable (WatchNews) -> Void
  ) -> Watch {
    root.watch(
      path + "/" + part, below: kind.parents(in: root) + [path], events: events,
      pollInterval: pollInterval, hear)
  }

  private func make() throws {
    let handle = try root.handle()
    let directory = handle.descriptor.rawValue
    do throws(Errno) {
      for path in kind.chain { try root.makeDirectoryIfMissing(path, at: directory) }
      guard let identifier = name.longIdentifier else {
        return try root.makeDirectoryIfMissing(relativePath, at: directory)
      }
      // A directory with a long name must never be visible without its identifier, so it is renamed
      // in.
      let staged = kind.path + "/.new-" + Nonce.next()
      try root.makeDirectoryIfMissing(staged, at: directory)
      do throws(Errno) {
        let file = try root.access.createFile(staged + "/" + Self.identifierFile, at: directory)
        try file.writeAll(Array(identifier.utf8))
        // Not even after a loss of power, which could leave the directory with an empty file.
        try file.synchronize()
        try rename(staged, at: directory, to: relativePath, at: directory, .keep)
      } catch {
        let cause = error
        defer { removeStaged(staged, at: directory) }
        guard cause == .alreadyExists else { throw cause }
        do throws(Errno) {
          // An interrupted sweep may have removed only the identifier.
          try rename(
            staged + "/" + Self.identifierFile, at: directory,
            to: relativePath + "/" + Self.identifierFile, at: directory, .keep)
        } catch {
          guard error == .alreadyExists || error == .noSuchFile else { throw error }
        }
      }
    } catch {
      // Another process has just removed the parent directory, or the container was replaced.
      guard error == .noSuchFile else { throw error }
      _ = try root.refreshed(handle)
    }
  }

  // The caller needs the reason for the failure; `doctor` finds the leftover.
  private func removeStaged(_ staged: String, at directory: Int32) {
    // It was perhaps never created; the directory is removed anyway.
    try? removeFile(staged + "/" + Self.identifierFile, at: directory)
    // It is left for `doctor`, as above.
    try? removeDirectory(staged, at: directory)
  }

  // SHA-256 has no known collisions. If one is ever made, it is detected, and nothing is shared.
  private func verify(_ directory: borrowing FileDescriptor) throws {
    // The directory is being created or removed; `make` adds the file.
    guard let found = try Self.longIdentifier(".", at: directory.rawValue) else {
      throw Errno.noSuchFile
    }
    guard Array(found.utf8) == Array(identifier.utf8) else {
      throw WormholeError(
        .nameCollision, "open the directory of a long identifier", path: path,
        reason: "its file \"identifier\" names another one",
        remedy: "remove the directory if its content is not needed")
    }
  }

  package static func longIdentifier(_ path: String, at directory: Int32) throws -> String? {
    let opened = try ifPresent(
      FileDescriptor.openBeneath(
        path + "/" + identifierFile, at: directory, [.readOnly, .nonBlocking]))
    guard let opened, try opened.status().kind == .regular else { return nil }
    let bytes = try opened.readToEnd(expectedBytes: 4_096, maximumBytes: 16 << 20)
    return String(validating: bytes, as: UTF8.self)
  }
}

extension NameKind {
  /// Returns the paths whose replacement matters to a watcher of this kind.
  func parents(in root: ContainerRoot) -> [String] {
    [root.path] + chain.map { root.path + "/" + $0 }
  }
}

extension ContainerPart {
  /// The file with the identifier of a name that is too long for a directory's.
  static func identifier(copied: Copied) -> Self {
    Self(NamedDirectory.identifierFile, copied: copied)
  }
}
