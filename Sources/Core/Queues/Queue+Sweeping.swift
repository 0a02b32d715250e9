import Containers
import Entries
import SystemCalls

extension Queue {
  /// Removes expired records of all senders.
  ///
  /// - Parameter later: For tests: the time by which the clock is ahead.
  /// - Returns: the removed paths.
  package func expire(nanosecondsLater later: UInt64 = 0) throws -> [String] {
    guard let place = try self.place.directory.open() else { return [] }
    return try self.place.expire(now: clock() + later, at: place).map { path + "/" + $0 }
  }

  /// Removes what dead senders and consumers left; nobody at work is disturbed.
  package func sweep() throws {
    guard let place = try self.place.directory.open() else { return }
    try self.place.sweep(at: place)
    try self.place.sweepForgotten(at: place)
    try self.place.sweepMarks(at: place)
    try self.place.sweepAttachments(at: place)
  }
}

extension QueueDirectory {
  /// Removes the records of cleared entries whose receipts are gone.
  fileprivate func sweepForgotten(at place: borrowing FileDescriptor) throws(Errno) {
    for entry in try SharedContainer.entries(Self.sent, at: place.rawValue) ?? [] {
      let path = Self.sent + "/" + entry.name.text
      guard path.hasSuffix(Self.forgottenSuffix) else { continue }
      guard try !exists(String(path.dropLast(Self.forgottenSuffix.count)), at: place) else {
        continue
      }
      try discard(path, at: place)
    }
  }

  /// Removes the marks of entries that no longer wait.
  fileprivate func sweepMarks(at place: borrowing FileDescriptor) throws(Errno) {
    for key in try SharedContainer.entries(Self.keys, at: place.rawValue) ?? [] {
      let marks = Self.keys + "/" + key.name.text
      for mark in try SharedContainer.entries(marks, at: place.rawValue) ?? [] {
        guard let id = OutcomeFile.id(mark.name.text) else { continue }
        try sweepMark(marks + "/" + mark.name.text, of: id.batch, at: place)
      }
      do throws(Errno) {
        try removeDirectory(marks, at: place.rawValue)
      } catch {
        // It contains marks of entries that wait.
        continue
      }
    }
  }

  // The lock first: its holder is about to store the entry, and releases it when the entry is
  // stored.
  private func sweepMark(
    _ path: String, of batch: EntryFile, at place: borrowing FileDescriptor
  ) throws(Errno) {
    do throws(Errno) {
      let file = try FileDescriptor.openBeneath(
        path, at: place.rawValue, [.readOnly, .nonBlocking])
      guard try file.tryLock(.exclusive) else { return }
      guard try !exists(Self.pendingPath(batch), at: place) else { return }
      try discard(path, at: place)
    } catch {
      // Another process was faster, or it is not a file of this package.
      return
    }
  }
}
