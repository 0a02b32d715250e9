package import SystemCalls

/// What a file is besides its content: owner, mode, times, extended attributes.
package struct FileMetadata {
  static let accessList = FileName("system.posix_acl_access")
  package static let defaultAccessList = FileName("system.posix_acl_default")

  package let status: FileStatus
  package let attributes: [(name: FileName, value: [UInt8])]

  /// Of an entry that is not to be opened: without its attributes.
  package init(_ status: FileStatus) {
    self.status = status
    attributes = []
  }

  package init(of file: borrowing FileDescriptor) throws(Errno) {
    status = try file.status()
    var attributes: [(name: FileName, value: [UInt8])] = []
    for name in try Self.attributeNames(of: file) {
      // Removed since, or one that this user may know of but not read.
      if let value = try tolerating(Self.refusals + [.noSuchAttribute], file.attribute(name)) {
        attributes.append((name, value))
      }
    }
    self.attributes = attributes
  }

  /// The names of extended attributes; none where the file system has none.
  package static func attributeNames(of file: borrowing FileDescriptor) throws(Errno) -> [FileName]
  {
    try tolerating([.unsupported, .noFunction], file.attributeNames()) ?? []
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
      // Labels and capabilities that only the administrator may give, or another file system that has
      // no such attributes.
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
