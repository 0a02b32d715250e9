import Containers
import Presences
package import SystemCalls

/// Removal of a queue's parts, when nothing is in it and nobody consumes it.
///
/// The process that removes it is its consumer for that time, so nobody else is. Each part is
/// removed only if it is empty, by a path through that consumer's own directory: a consumer that
/// was replaced while it was stopped no longer removes anything (ENOENT). A sender that arrives at
/// the same moment finds a part missing, creates all of them again, and stores its entry there; the
/// directory is then not empty, and stays.
extension Queue {
  /// - Returns: whether all parts are gone except for the lease.
  package func removeParts() throws -> Bool {
    let registration = try role.enterExclusively(overtaking: .nobody, until: .now)
    defer { registration.leave() }
    let steps = try ConsumerSteps(
      self, .init(maximumDeliveries: nil, released: ReleasedEntries {}))
    // As at the beginning of consuming.
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
          // It may never have been created.
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
  /// All except for `taken/`.
  fileprivate static let parts = [
    pending, sent, outcomes, failed, AttachmentPlace.directory, keys, staged,
  ]

  /// Returns whether the queue contains no entry, no record of one, and nothing on its way.
  ///
  /// - Parameter watched: inodes that are being watched; if one of them is the queue's, it does not
  ///   count as empty either.
  package func isEmpty(at place: borrowing FileDescriptor, watched: Set<UInt64> = []) throws -> Bool
  {
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
