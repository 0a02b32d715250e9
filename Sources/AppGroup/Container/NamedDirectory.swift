import SystemCalls

/// The directory of one identifier: one each, so that the kernel wakes only those who watch it.
struct NamedDirectory: Sendable {
  let root: ContainerRoot
  let kind: NameKind
  let identifier: String
  let name: EncodedName
  /// Relative to the container.
  let relativePath: String
  private let heldPath: String

  static let identifierFile = "identifier"

  init(root: ContainerRoot, kind: NameKind, identifier: String) {
    self.root = root
    self.kind = kind
    self.identifier = identifier
    name = EncodedName(identifier)
    relativePath = kind.path + "/" + name.component
    heldPath = relativePath + "/" + LeaseSite.held
  }

  var path: String { root.path + "/" + relativePath }

  /// Opens the directory.
  ///
  /// - Returns: nil when there is none.
  func open(_ options: OpenOptions = [.pathOnly, .directory]) throws -> FileDescriptor? {
    for attempt in 0..<2 {
      let handle = try root.handle()
      do {
        let directory = try FileDescriptor.openBeneath(
          relativePath, at: handle.descriptor.rawValue, options)
        if name.longIdentifier != nil { try verify(directory) }
        return directory
      } catch let error as Errno where error == .noSuchFile {
        // The whole container may have been replaced by another less than a second ago.
        let fresh = try root.refreshed(handle)
        if attempt > 0 || fresh === handle { return nil }
      }
    }
    return nil
  }

  /// Opens the directory and looks at what is in it, from the beginning when a sweep has removed it
  /// meanwhile: in what is removed nothing is found (ENOENT).
  ///
  /// - Returns: nil when there is none.
  func look<Result>(
    _ options: OpenOptions = [.pathOnly, .directory],
    _ body: (borrowing FileDescriptor) throws -> Result
  ) throws -> Result? {
    for _ in 0..<interruptionLimit {
      guard let directory = try open(options) else { return nil }
      do {
        return try body(directory)
      } catch let error as Errno where error == .noSuchFile {
        guard try directory.status().links == 0 else { throw error }
      }
    }
    throw Errno.noSuchFile
  }

  /// Opens the lease of the value in the directory, in one call: all that a change of a value that
  /// is there needs.
  ///
  /// - Returns: nil when there is none, or when the directory has to be looked at first.
  func openHeld() throws -> HeldDirectory? {
    guard name.longIdentifier == nil else { return nil }
    let handle = try root.handle()
    do throws(Errno) {
      return HeldDirectory(
        try FileDescriptor.openBeneath(
          heldPath, at: handle.descriptor.rawValue, [.readOnly, .directory]))
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// Opens the directory, and makes it where it is missing.
  func openOrMake() throws -> FileDescriptor {
    for _ in 0..<interruptionLimit {
      if let directory = try open() { return directory }
      try make()
    }
    throw Errno.noSuchFile
  }

  /// Removes the directory if there is nothing in it.
  ///
  /// - Returns: whether it is gone.
  func removeIfEmpty() throws -> Bool {
    let container = try root.handle().descriptor.rawValue
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
        // Somebody has come meanwhile, and needs what says the identifier.
        if name.longIdentifier != nil { try make() }
        return false
      default: throw error
      }
    }
  }

  /// Watches the directory, whichever the path names; makes it where it is missing.
  func watch(_ signal: @escaping @Sendable () -> Void) throws -> Watch {
    _ = try root.handle()
    return ChangeMonitor.shared.watch(
      path: path, parents: kind.parents(in: root),
      prepare: {
        // Called when something was replaced: the look at most once a second would be too late for
        // the observers, who are signalled right after this.
        _ = try root.refreshed(root.handle())
        _ = try openOrMake()
      }, hear: { _ in signal() })
  }

  private func make() throws {
    let handle = try root.handle()
    let directory = handle.descriptor.rawValue
    do throws(Errno) {
      try kind.make(in: root, at: directory)
      guard let identifier = name.longIdentifier else {
        return try root.makeDirectoryIfMissing(relativePath, at: directory)
      }
      // A directory whose name is not enough is never seen without its identifier: rename it in.
      let staged = kind.path + "/.new-" + Nonce.next()
      try root.makeDirectoryIfMissing(staged, at: directory)
      do throws(Errno) {
        let file = try root.createFile(staged + "/" + Self.identifierFile, at: directory)
        try file.writeAll(Array(identifier.utf8))
        // Nor after a loss of power, which could leave the directory with an empty file.
        try file.synchronize()
        try rename(staged, at: directory, to: relativePath, at: directory, .keep)
      } catch {
        let cause = error
        defer { removeStaged(staged, at: directory) }
        guard cause == .alreadyExists else { throw cause }
        do throws(Errno) {
          // A sweep that was removing it may have got no further than the identifier.
          try rename(
            staged + "/" + Self.identifierFile, at: directory,
            to: relativePath + "/" + Self.identifierFile, at: directory, .keep)
        } catch {
          guard error == .alreadyExists || error == .noSuchFile else { throw error }
        }
      }
    } catch {
      // Somebody has just removed the directory above; or the container is another one now.
      guard error == .noSuchFile else { throw error }
      _ = try root.refreshed(handle)
    }
  }

  // Why it was not put in place is what its user must know; `doctor` finds what is left.
  private func removeStaged(_ staged: String, at directory: Int32) {
    do throws(Errno) {
      try removeFile(staged + "/" + Self.identifierFile, at: directory)
    } catch {
      // Perhaps never made: the directory goes all the same.
    }
    do throws(Errno) {
      try removeDirectory(staged, at: directory)
    } catch {
      // Left for `doctor`, as said above.
      return
    }
  }

  // SHA-256 has no known collisions; should one ever be made, it is noticed and not shared.
  private func verify(_ directory: borrowing FileDescriptor) throws {
    // Being made, or removed: `make` puts it there.
    guard let found = try Self.longIdentifier(".", at: directory.rawValue) else {
      throw Errno.noSuchFile
    }
    guard Array(found.utf8) == Array(identifier.utf8) else {
      throw AppGroupError(
        .nameCollision, "open the directory of a long identifier", path: path,
        reason: "its file \"identifier\" names another one",
        remedy: "remove the directory if its content is not needed")
    }
  }

  /// The identifier that a long name in a listing stands for; nil for what was not made by us, so
  /// that nothing planted there hides the others.
  static func listedIdentifier(
    _ name: String, of kind: NameKind, at container: Int32
  ) throws -> String? {
    do {
      let identifier = try longIdentifier(kind.path + "/" + name, at: container)
      return identifier.flatMap { EncodedName($0).component == name ? $0 : nil }
    } catch let error as Errno {
      guard Self.foreign.contains(error) else { throw error }
      return nil
    }
  }

  // A file, a link, a socket, another user's, too large.
  private static let foreign: Set<Errno> = [
    .notDirectory, .tooManyLinks, .noSuchDevice, .accessDenied, .fileTooLarge,
  ]

  static func longIdentifier(_ path: String, at directory: Int32) throws -> String? {
    do throws(Errno) {
      let file = try FileDescriptor.openBeneath(
        path + "/" + identifierFile, at: directory, [.readOnly, .nonBlocking])
      guard try file.status().kind == .regular else { return nil }
      let bytes = try file.readToEnd(expectedBytes: 4_096, maximumBytes: 16 << 20)
      return String(validating: bytes, as: UTF8.self)
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }
}
