package import WormholeSystem

/// Copies one file, symlink or FIFO.
package struct EntryCopy {
  let mode: TreeCopy.Mode
  let check: () throws -> Void
  /// Whether new files inherit access control lists from their directory.
  let dropsInherited: Bool
  /// An extended attribute that means nothing for a copy.
  private let leavesOut: FileName?
  /// Whether a copy of a file that was just written gets a time one nanosecond earlier, so that a
  /// write at this moment changes the time.
  private let isDistinct: Bool
  private var content: ContentCopy

  package init(
    mode: TreeCopy.Mode, check: @escaping () throws -> Void, dropsInherited: Bool,
    leavesOut: FileName? = nil, isDistinct: Bool = false
  ) {
    self.isDistinct = isDistinct
    self.mode = mode
    self.check = check
    self.dropsInherited = dropsInherited
    self.leavesOut = leavesOut
    content = ContentCopy(check: check)
  }

  /// - Parameter found: the status of the entry, if the caller has just read it.
  /// - Returns: false when it vanished.
  /// - Throws: `TreeError`: refused with `.isDirectory` when it became a directory.
  package mutating func copy(
    _ name: FileName, at source: Int32, _ found: FileStatus? = nil, to newName: FileName,
    at target: Int32, path: TreePath
  ) throws -> Bool {
    var found = found
    // A program may put a different kind of file in its place between two calls, but not forever.
    for _ in 0..<8 {
      do {
        return try copyOnce(name, at: source, found, to: newName, at: target, path: path)
      } catch is KindChanged {
        found = nil
        continue
      } catch let error as Errno {
        if error.isVanishing, isMissing(name, at: source) { return false }
        throw TreeError(action: "copy", path: path, reason: .refused(error))
      }
    }
    throw TreeError(action: "copy", path: path, reason: .refused(.deviceBusy))
  }

  private struct KindChanged: Error {}

  private func isMissing(_ name: FileName, at source: Int32) -> Bool {
    // The error of the copy says what is wrong.
    (try? tolerating(Errno.vanishing, fileStatus(name, at: source)) == nil) ?? false
  }

  private mutating func copyOnce(
    _ name: FileName, at source: Int32, _ found: FileStatus?, to newName: FileName,
    at target: Int32, path: TreePath
  ) throws -> Bool {
    let status = try found ?? fileStatus(name, at: source)
    // A second name of a socket still reaches the program behind it.
    if status.kind == .socket || mode == .link, status.kind != .directory,
      try hasSecondName(name, at: source, to: newName, at: target)
    {
      return true
    }
    switch status.kind {
    case .regular:
      try copyFile(name, at: source, to: newName, at: target)
    case .symbolicLink:
      guard let pointsTo = try tolerating([.invalidArgument], linkTarget(name, at: source)) else {
        throw KindChanged()
      }
      try makeSymbolicLink(newName, at: target, target: pointsTo)
      try apply(FileMetadata(status), toEntry: newName, at: target)
    case .fifo:
      try makeFIFO(newName, at: target)
      try apply(FileMetadata(status), toEntry: newName, at: target)
    case .socket: break
    case .device: throw TreeError(action: "copy", path: path, reason: .unsupported(.device))
    case .directory: throw Errno.isDirectory
    }
    return true
  }

  private func hasSecondName(
    _ name: FileName, at source: Int32, to newName: FileName, at target: Int32
  ) throws(Errno) -> Bool {
    // Another user's file (protected_hardlinks, proc_sys_fs(5)), too many names, another file
    // system, or one without hard links.
    let refusals: [Errno] = [
      .notPermitted, .accessDenied, .tooManyNames, .crossesDevices, .unsupported, .noFunction,
    ]
    return try tolerating(refusals, link(name, at: source, to: newName, at: target)) != nil
  }

  private mutating func copyFile(
    _ name: FileName, at source: Int32, to newName: FileName, at target: Int32
  ) throws {
    // A FIFO opens at once for a reader that does not block (fifo(7)). The errors are those of a
    // symbolic link, and of a socket or device without a program behind it.
    let opened = try tolerating(
      [.tooManyLinks, .noSuchDevice],
      FileDescriptor.open(name, at: source, [.readOnly, .noFollow, .nonBlocking]))
    guard let original = opened else { throw KindChanged() }
    let status = try original.status()
    guard status.kind == .regular else { throw KindChanged() }
    try copyFile(original, status, to: newName, at: target)
  }

  /// Copies a regular file that was just opened to read it.
  package mutating func copy(
    _ original: borrowing FileDescriptor, _ status: FileStatus, to newName: FileName,
    at target: Int32, path: TreePath
  ) throws {
    do {
      try copyFile(original, status, to: newName, at: target)
    } catch let error as Errno {
      throw TreeError(action: "copy", path: path, reason: .refused(error))
    }
  }

  private mutating func copyFile(
    _ original: borrowing FileDescriptor, _ status: FileStatus, to newName: FileName,
    at target: Int32
  ) throws {
    let metadata = try FileMetadata(of: original, status, without: leavesOut)
    let copy = try FileDescriptor.open(
      newName, at: target, [.writeOnly, .create, .exclusive, .noFollow], mode: 0o600)
    try content.copy(original, status, to: copy)
    try apply(metadata, to: copy)
    try copy.close()
  }

  // Of an entry that must not be opened.
  private func apply(
    _ metadata: FileMetadata, toEntry name: FileName, at directory: Int32
  ) throws(Errno) {
    let raw = try fileStatus(name, at: directory)
    let permissions = try metadata.applyOwner(raw) { (owner, group) throws(Errno) in
      try setOwner(name, at: directory, owner, group: group)
    }
    if metadata.status.kind != .symbolicLink {
      try setPermissions(name, at: directory, permissions)
    }
    try setModified(
      name, at: directory, seconds: metadata.status.modifiedSeconds,
      nanoseconds: metadata.status.modifiedNanoseconds)
  }

  /// Gives a file or directory its final metadata.
  func apply(
    _ metadata: FileMetadata, to file: borrowing FileDescriptor
  ) throws(Errno) {
    let raw = try file.status()
    let permissions = try metadata.applyOwner(raw) { (owner, group) throws(Errno) in
      try file.setOwner(owner, group: group)
    }
    try metadata.applyAttributes(to: file, dropsInherited: dropsInherited)
    // After the owner, whose change clears the set-id bits, and after the access control list,
    // which sets the group's bits; after both, because a file need not be writable then. The mode
    // of a new file is right already if nothing has changed it since.
    let status = metadata.status
    let hasOwner = raw.owner == status.owner && raw.group == status.group
    let isUnchanged = hasOwner && metadata.attributes.isEmpty && !dropsInherited
    if !isUnchanged || raw.permissions != permissions { try file.setPermissions(permissions) }
    var time = status.modifiedMoment
    // A file system may count whole seconds.
    if isDistinct, status.isJustWritten { time = time.earlierByOneNanosecond }
    try file.setModified(seconds: time.seconds, nanoseconds: time.nanoseconds)
  }
}

/// The metadata of a file: owner, mode, times, extended attributes.
package struct FileMetadata {
  private static let accessList = FileName("system.posix_acl_access")
  private static let defaultAccessList = FileName("system.posix_acl_default")

  let status: FileStatus
  let attributes: [(name: FileName, value: [UInt8])]

  /// Of an entry that must not be opened: without its attributes.
  init(_ status: FileStatus) {
    self.status = status
    attributes = []
  }

  init(
    of file: borrowing FileDescriptor, _ found: FileStatus? = nil, without omitted: FileName? = nil
  ) throws(Errno) {
    status = if let found { found } else { try file.status() }
    var attributes: [(name: FileName, value: [UInt8])] = []
    for name in try Self.attributeNames(of: file) where name != omitted {
      // Removed since, or an attribute that this user may see but not read.
      if let value = try tolerating(Self.refusals + [.noSuchAttribute], file.attribute(name)) {
        attributes.append((name, value))
      }
    }
    self.attributes = attributes
  }

  /// The names of extended attributes; empty if the file system has none.
  private static func attributeNames(
    of file: borrowing FileDescriptor
  ) throws(Errno) -> [FileName] {
    try tolerating([.unsupported, .noFunction], file.attributeNames()) ?? []
  }

  /// Whether new entries of a directory inherit access control lists.
  package static func areInherited(in directory: borrowing FileDescriptor) throws(Errno) -> Bool {
    try attributeNames(of: directory).contains(defaultAccessList)
  }

  /// Gives a file these attributes, and only these access control lists.
  ///
  /// - Parameter dropsInherited: whether it may have inherited lists from its directory.
  func applyAttributes(
    to file: borrowing FileDescriptor, dropsInherited: Bool
  ) throws(Errno) {
    if dropsInherited {
      for name in try Self.attributeNames(of: file)
      where name == Self.accessList || name == Self.defaultAccessList {
        if !attributes.contains(where: { $0.name == name }) { try file.removeAttribute(name) }
      }
    }
    for (name, value) in attributes {
      // Labels and capabilities that only the administrator may set, or a file system without such
      // attributes.
      _ = try tolerating(Self.refusals, file.setAttribute(name, value))
    }
  }

  /// Gives a file the owner and group, as far as this user may.
  ///
  /// - Returns: the permission bits it may have: without the set-id bits of an owner or group that
  ///   it did not get, which would lend it the rights of another user.
  func applyOwner(
    _ current: FileStatus, _ set: (UInt32?, UInt32?) throws(Errno) -> Void
  ) throws(Errno) -> UInt32 {
    // EINVAL: an owner that has no number in this user namespace.
    let refusals = Self.refusals + [.invalidArgument]
    var keepsOwner = status.owner == current.owner
    if !keepsOwner { keepsOwner = try tolerating(refusals, set(status.owner, nil)) != nil }
    var keepsGroup = status.group == current.group
    if !keepsGroup { keepsGroup = try tolerating(refusals, set(nil, status.group)) != nil }
    var permissions = status.permissions
    if !keepsOwner { permissions &= ~0o4000 }
    if !keepsGroup { permissions &= ~0o2000 }
    return permissions
  }

  private static let refusals: [Errno] = [.notPermitted, .accessDenied, .unsupported]
}
