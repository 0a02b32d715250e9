package import WormholeSystem

extension QueueDirectory {
  /// All except for `taken/`.
  package static let parts = [
    pending, sent, outcomes, failed, AttachmentPlace.directory, keys, staged,
  ]

  /// Returns whether the queue contains no entry, no record of one, and nothing on its way.
  package func isEmpty() throws -> Bool {
    let known = Self.parts + [Self.taken, LeaseSite.lease, NamedDirectory.identifierFile]
    let top = try openFile(".", [.readOnly, .directory])
    for entry in try top.entries() where !known.contains(entry.name.text) { return false }
    let nested = try [Self.taken, Self.keys].flatMap { part in
      try (list(part) ?? []).map { part + "/" + $0.name.text }
    }
    return try (Self.parts.filter { $0 != Self.keys } + nested).allSatisfy {
      try list($0)?.isEmpty ?? true
    }
  }
}

extension QueueDirectory {
  /// Makes a call that needs an inode. If there is none left, an empty part of the queue makes way: a
  /// process that misses it creates it again.
  package func makingRoom(_ call: () throws(Errno) -> Void) throws(Errno) {
    // Without one of the others a consumer would seem to be replaced.
    for part in [Self.outcomes, Self.sent, Self.keys] {
      do throws(Errno) {
        return try call()
      } catch {
        guard error.isLackOfRoom else { throw error }
        _ = try tolerating(
          [.noSuchFile, .directoryNotEmpty, .alreadyExists], removeEmpty(part))
      }
    }
    try call()
  }

  /// Removes the records of cleared entries whose receipts are gone.
  package func sweepForgotten() throws(Errno) {
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
  package func sweepMarks() throws(Errno) {
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
