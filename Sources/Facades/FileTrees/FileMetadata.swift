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
      do throws(Errno) {
        attributes.append((name, try file.attribute(name)))
      } catch {
        // Removed since, or one that this user may know of but not read.
        guard error == .noSuchAttribute || Self.isRefusal(error) else { throw error }
      }
    }
    self.attributes = attributes
  }

  /// The names of extended attributes; none where the file system has none.
  package static func attributeNames(of file: borrowing FileDescriptor) throws(Errno) -> [FileName]
  {
    do throws(Errno) {
      return try file.attributeNames()
    } catch {
      guard error == .unsupported || error == .noFunction else { throw error }
      return []
    }
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
      do throws(Errno) {
        try file.setAttribute(name, value)
      } catch {
        // Labels and capabilities that only the administrator may give, or another file system that
        // has no such attributes.
        guard Self.isRefusal(error) else { throw error }
      }
    }
  }

  /// Gives a file the owner and group, as far as this user may.
  ///
  /// - Returns: the permission bits it may have: without the set-id bits of an owner or group that
  ///   it did not get, which would lend it the rights of another user.
  func applyOwner(
    _ current: FileStatus, _ set: (UInt32?, UInt32?) throws(Errno) -> Void
  ) throws(Errno) -> UInt32 {
    let keepsOwner = try attempt(status.owner == current.owner) { () throws(Errno) in
      try set(status.owner, nil)
    }
    let keepsGroup = try attempt(status.group == current.group) { () throws(Errno) in
      try set(nil, status.group)
    }
    var permissions = status.permissions
    if !keepsOwner { permissions &= ~0o4000 }
    if !keepsGroup { permissions &= ~0o2000 }
    return permissions
  }

  private func attempt(
    _ isDone: Bool, _ body: () throws(Errno) -> Void
  ) throws(Errno) -> Bool {
    guard !isDone else { return true }
    do throws(Errno) {
      try body()
      return true
    } catch {
      // EINVAL: an owner that has no number in this user namespace.
      guard Self.isRefusal(error) || error == .invalidArgument else { throw error }
      return false
    }
  }

  private static func isRefusal(_ error: Errno) -> Bool {
    [.notPermitted, .accessDenied, .unsupported].contains(error)
  }
}
