import Containers
import SystemCalls

/// Reading a value that takes part in a transaction.
extension Value {
  /// Returns what a look at the value finds.
  ///
  /// | the file | the value |
  /// |---|---|
  /// | has no mark | its content |
  /// | has one, or is missing | as a committed transaction leaves it, if there is one; otherwise as found, if the file is still there: then no transaction was settled in between |
  ///
  /// - Parameters:
  ///   - look: Returns nil if there is no file.
  ///   - pending: Returns what a committed transaction leaves; nil if there is none.
  func settled<Look>(
    in handle: ContainerRoot.Handle, _ look: () throws -> (Look, FileStatus)?,
    pending: () throws -> Look?
  ) throws -> Look? {
    var found = try look()
    for _ in 0..<renameRaceLimit {
      if let found, found.1.permissions & Transaction.mark == 0 { break }
      if let pending = try pending() { return pending }
      let container = handle.descriptor.rawValue
      let now = try tolerating(
        [.noSuchFile, .notDirectory], fileStatus(relativePath, at: container))
      if now.map(Version.init) == found.map({ Version($0.1) }) { break }
      found = try look()
    }
    return found?.0
  }

  /// Returns the value as a committed transaction leaves it that is not settled yet.
  ///
  /// - Parameter content: Looks at the file with the content, relative to the container.
  /// - Returns: nil if there is no such transaction.
  func committed<Look>(
    in handle: ContainerRoot.Handle, absent: Look, _ content: (String) throws -> Look
  ) throws -> Look? {
    guard let part = try committedPart(in: handle) else { return nil }
    guard part.kind == .replace else { return absent }
    do {
      return try content(part.content)
    } catch let error as Errno where error == .noSuchFile {
      // Published just now.
      return nil
    }
  }

  private func committedPart(
    in handle: ContainerRoot.Handle
  ) throws(Errno) -> Transaction.Part? {
    let container = handle.descriptor.rawValue
    let part = try Transaction.part(of: directory.relativePath, at: container) {
      self.container.root.access.trusts($0, in: handle.status)
    }
    guard let part, part.kind != .keep, try exists(part.transaction.committed, at: container)
    else { return nil }
    return part
  }

  /// Marks the value's file before a transaction that will replace or remove it is committed.
  ///
  /// - Parameter content: The content of the file.
  func mark(_ content: ValueSnapshot, _ lease: Lease) throws {
    let file = try FileDescriptor.openBeneath(
      fileName, at: try lease.site.directory(), [.readOnly, .nonBlocking])
    let status = try file.status()
    do throws(Errno) {
      try file.setPermissions(status.permissions | Transaction.mark)
    } catch {
      guard error == .notPermitted else { throw error }
      // Only its owner may do that, and another member of the group has written it. So a copy takes
      // its place, with the mark.
      return try replaceWithMarkedCopy(content, status, lease)
    }
    guard try file.status().permissions & Transaction.mark != 0 else {
      throw AppGroupError.unsuitableFileSystem(container, "permissions")
    }
  }

  private func replaceWithMarkedCopy(
    _ content: ValueSnapshot, _ status: FileStatus, _ lease: Lease
  ) throws {
    let entry = lease.nextEntry()
    let copy = try container.root.access.createFile(entry, at: lease.stagingPlace.directory)
    try copy.writeAll(content.bytes() ?? [])
    try copy.setPermissions(container.root.access.fileMode | Transaction.mark)
    try copy.setModified(
      seconds: status.modifiedSeconds, nanoseconds: status.modifiedNanoseconds)
    try copy.writeBack()
    try lease.moveOut(entry, as: fileName, .exchange)
  }
}

extension AppGroupError {
  static func unsuitableFileSystem(
    _ container: SharedContainer, _ feature: String, _ error: Errno = .unsupported
  ) -> AppGroupError {
    AppGroupError(
      .inputOutput, "change several values", path: container.root.path,
      reason: "its file system has no \(feature)", remedy: "keep the container on another one",
      errorNumber: error.rawValue)
  }
}
