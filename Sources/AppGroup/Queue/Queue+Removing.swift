import SystemCalls

/// A queue gives its space back, when nothing is in it and nobody consumes it.
///
/// Who removes it is its consumer meanwhile, so that nobody else is. Each part is removed only if it is
/// empty, by a path through that consumer's own directory: one that was replaced while it was stopped
/// removes nothing any more (ENOENT). A sender that comes in the same moment finds that a part is
/// missing, makes all of them again, and stores its entry there; then the directory is not empty, and
/// stays.
extension Queue {
  /// - Returns: whether all parts are gone but the lease.
  func removeParts() throws -> Bool {
    let registration = try role.enterExclusively(overtaking: .nobody, until: .now)
    defer { registration.leave() }
    let steps = try ConsumerSteps(
      self, .init(maximumDeliveries: nil, released: ReleasedEntries {}))
    // As a consumer that begins.
    try registration.confirm()
    try sweep()
    guard let place = try place.directory.open(), try self.place.isEmpty(at: place) else {
      return false
    }
    do throws(Errno) {
      for part in QueueDirectory.parts {
        let path = steps.takenPath + "/../../" + part
        do throws(Errno) {
          try removeDirectory(path, at: place.rawValue)
        } catch {
          // Never made, as it may be.
          guard error == .noSuchFile, try self.place.exists(steps.takenPath, at: place) else {
            throw error
          }
        }
      }
      try removeDirectory(steps.takenPath, at: place.rawValue)
      try removeDirectory(QueueDirectory.taken, at: place.rawValue)
      return true
    } catch {
      guard [.noSuchFile, .directoryNotEmpty, .alreadyExists].contains(error) else { throw error }
      return false
    }
  }
}

extension QueueDirectory {
  /// All but `taken/`.
  fileprivate static let parts = [
    pending, sent, outcomes, failed, AttachmentPlace.directory, keys, staged,
  ]

  /// Whether no entry is in the queue, nor anything that tells of one, nor anything on its way.
  ///
  /// - Parameter watched: inodes that somebody watches: then it is not empty either.
  func isEmpty(at place: borrowing FileDescriptor, watched: Set<UInt64> = []) throws -> Bool {
    let known = Self.parts + [Self.taken, LeaseSite.lease, NamedDirectory.identifierFile]
    let top = try FileDescriptor.openBeneath(".", at: place.rawValue, [.readOnly, .directory])
    for entry in try top.entries() where !known.contains(entry.name.text) { return false }
    for part in ["."] + Self.parts + [Self.taken] where try exists(part, at: place) {
      guard try !watched.contains(fileStatus(part, at: place.rawValue).inode) else { return false }
    }
    for part in Self.parts where part != Self.keys {
      guard try isEmpty(part, at: place) else { return false }
    }
    for part in [Self.taken, Self.keys] {
      for entry in try SharedContainer.entries(part, at: place.rawValue) ?? [] {
        guard try isEmpty(part + "/" + entry.name.text, at: place) else { return false }
      }
    }
    return true
  }

  private func isEmpty(
    _ part: String, at place: borrowing FileDescriptor
  ) throws(Errno) -> Bool {
    try SharedContainer.entries(part, at: place.rawValue)?.isEmpty ?? true
  }
}
