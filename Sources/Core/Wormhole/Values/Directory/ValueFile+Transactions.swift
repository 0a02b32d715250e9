import WormholeSystem

/// Reading a value that takes part in a transaction.
extension ValueFile {
  /// Returns the result of a look at the value.
  ///
  /// | the file | the value |
  /// |---|---|
  /// | has no mark | its content |
  /// | has a mark, or is missing | as a committed transaction leaves it, if there is one; otherwise as found, if the file still exists: then no transaction was settled in between |
  ///
  /// - Parameter look: Looks at a file relative to the container; nil if there is none.
  func settled(
    in handle: ContainerRoot.Handle,
    _ look: (String) throws -> (snapshot: PlainSnapshot, status: FileStatus)?
  ) throws -> PlainSnapshot? {
    var found = try look(relativePath)
    for _ in 0..<renameRaceLimit {
      if let found, !found.status.isMarked { break }
      if let part = try committedPart(in: handle) {
        guard part.kind == .replace else { return nil }
        // Otherwise it was published just now.
        if let pending = try look(part.content) { return pending.snapshot }
      }
      let container = handle.descriptor.rawValue
      let now = try tolerating(
        [.noSuchFile, .notDirectory], fileStatus(relativePath, at: container))
      if now.map(Version.init) == found.map({ Version($0.status) }) { break }
      found = try look(relativePath)
    }
    return found?.snapshot
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
  func mark(_ lease: Lease) throws {
    let file = try FileDescriptor.openBeneath(
      name, at: try lease.site.directory(), [.readOnly, .nonBlocking])
    let status = try file.status()
    do throws(Errno) {
      try file.setPermissions(status.permissions | FileStatus.mark)
    } catch {
      guard error == .notPermitted else { throw error }
      // Only its owner may do that, but another member of the group has written it. So a copy with
      // the mark takes its place.
      return try replaceWithMarkedCopy(
        file.readToEnd(expectedBytes: Int(status.size), maximumBytes: .max), status, lease: lease)
    }
    guard try file.status().isMarked else {
      throw WormholeError.unsuitableFileSystem(container, "permissions")
    }
  }

  private func replaceWithMarkedCopy(
    _ content: [UInt8], _ status: FileStatus, lease: Lease
  ) throws {
    let entry = lease.nextEntry()
    let copy = try container.root.access.createFile(entry, at: lease.stagingPlace.directory)
    try copy.writeAll(content)
    try copy.setPermissions(container.root.access.fileMode | FileStatus.mark)
    try copy.setModified(
      seconds: status.modifiedSeconds, nanoseconds: status.modifiedNanoseconds)
    try copy.writeBack()
    try lease.moveOut(entry, to: name, .exchange)
  }
}

extension WormholeError {
  static func unsuitableFileSystem(
    _ container: SharedContainer, _ feature: String, error: Errno = .unsupported
  ) -> WormholeError {
    WormholeError(
      .inputOutput, "change several values", path: container.root.path,
      reason: "its file system has no \(feature)", remedy: "keep the container on another one",
      errorNumber: error.rawValue)
  }
}
