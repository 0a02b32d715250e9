import Containers
import Entries
import Presences
import QueueFiles
import SystemCalls

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
    defer { registration.close() }
    // Workers are not exclusive. One that begins now waits for this process.
    guard try !role.members().contains(where: { !$0.isExclusive }) else { return false }
    let consumer = try DirectoryConsumer(
      DeliveryTerms(OpenQueue(self), released: ReleasedEntries {}),
      named: "consumer-" + Nonce.next(), beside: OtherConsumers(of: self, role: registration))
    // As at the beginning of consuming.
    try registration.confirm()
    try sweep()
    guard let place = try open(), try place.isEmpty() else {
      return false
    }
    do throws(Errno) {
      for part in QueueDirectory.parts {
        let path = consumer.takenPath + "/../../" + part
        do throws(Errno) {
          try place.removeEmpty(path)
        } catch {
          // It may never have been created.
          guard error == .noSuchFile, try place.exists(consumer.takenPath) else {
            throw error
          }
        }
      }
      try place.removeEmpty(consumer.takenPath)
      try place.removeEmpty(QueueDirectory.taken)
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
  package func isEmpty(watched: Set<UInt64> = []) throws -> Bool {
    let known = Self.parts + [Self.taken, LeaseSite.lease, NamedDirectory.identifierFile]
    let top = try openFile(".", [.readOnly, .directory])
    for entry in try top.entries() where !known.contains(entry.name.text) { return false }
    for part in ["."] + Self.parts + [Self.taken] where try exists(part) {
      guard try !watched.contains(fileStatus(part).inode) else { return false }
    }
    let nested = try [Self.taken, Self.keys].flatMap { part in
      try (list(part) ?? []).map { part + "/" + $0.name.text }
    }
    return try (Self.parts.filter { $0 != Self.keys } + nested).allSatisfy {
      try list($0)?.isEmpty ?? true
    }
  }
}

extension Queue {
  /// Removes expired records of all senders.
  ///
  /// - Parameter later: For tests: the time by which the clock is ahead.
  /// - Returns: the removed paths.
  package func expire(nanosecondsLater later: UInt64 = 0) throws -> [String] {
    try store.expire(later: later)
  }

  /// Removes what dead senders and consumers left; nobody at work is disturbed.
  package func sweep() throws {
    try store.sweep()
  }
}

extension QueueDirectory {
  /// Removes the records of cleared entries whose receipts are gone.
  func sweepForgotten() throws(Errno) {
    for entry in try list(Self.sent) ?? [] {
      let path = Self.sent + "/" + entry.name.text
      guard path.hasSuffix(Self.forgottenSuffix) else { continue }
      guard try !exists(String(path.dropLast(Self.forgottenSuffix.count))) else {
        continue
      }
      try discard(path)
    }
  }

  /// Removes the marks of entries that no longer wait.
  func sweepMarks() throws(Errno) {
    for key in try list(Self.keys) ?? [] {
      let marks = Self.keys + "/" + key.name.text
      for mark in try list(marks) ?? [] {
        guard let id = OutcomeFile.id(mark.name.text) else { continue }
        try sweepMark(marks + "/" + mark.name.text, of: id.batch)
      }
      do throws(Errno) {
        try removeEmpty(marks)
      } catch {
        // It contains marks of entries that wait.
        continue
      }
    }
  }

  // The lock first: its holder is about to store the entry, and releases it when the entry is
  // stored.
  private func sweepMark(_ path: String, of batch: EntryFile) throws(Errno) {
    do throws(Errno) {
      let file = try openFile(path, [.readOnly, .nonBlocking])
      guard try file.tryLock(.exclusive) else { return }
      guard try !exists(Self.pendingPath(batch)) else { return }
      try discard(path)
    } catch {
      // Another process was faster, or it is not a file of this package.
      return
    }
  }
}
