package import Containers
package import Entries
import PropertyLists
import SystemCalls

/// `queues/<name>/`: its files, and the one step that creates or moves each of them.
///
/// ```
/// staged/<nonce>                  a batch or an outcome being written; its writer has it locked
/// pending/<batch>                 stored: complete before it was renamed to this name
/// taken/<consumer>/<batch>        taken: renamed from pending/; unlinked when all is settled
/// taken/<consumer>/<batch>.done   its settled entries, a line appended for each
/// taken/<consumer>/<batch>.deliveries how often each was delivered; see `DeliveryLog`
/// taken/<consumer>/<batch>.<index>.marked its consumer's progress; see `QueueEntry.mark`
/// taken/<consumer>/outcome-<nonce> a note on its way from staged/ to outcomes/
/// outcomes/<batch>.<index>        cancelled, expired or failed, until the sender has learned of it
/// failed/<batch>.<index>          an entry that its consumer gave up and kept; see `QueueFailure`
/// sent/<batch>                    a second name of a stored batch, for a sender that wants to find
///                                 its entries and their outcomes; see `QueueReceipt`
/// sent/<batch>.forgotten          its entries that the sender has cleared, a line each
/// keys/<sender>%2F<key>/…         entries to be superseded by a newer one with the same key
/// lease/                          held for cancelling or superseding, like a value's lease
/// ```
///
/// **Consuming.** There is one directory in `taken/`, and a process that wants to consume renames
/// it to a name of its own. Every step of a consumer is a call on a path through that name; so a
/// consumer that was replaced while it was stopped finds nothing there (ENOENT), takes nothing and
/// settles nothing.
///
/// **Cancelled or delivered.** The batch is exchanged in `pending/` with one in which the entry is
/// cancelled. Taking moves whichever of the two has that name.
///
/// **What a crash leaves**: an unlocked file in `staged/`, removed by the next process that opens
/// the queue to consume, and batches in `taken/`, which the next consumer delivers again.
package struct QueueDirectory: Sendable {
  package let directory: NamedDirectory

  package static let staged = "staged"
  package static let pending = "pending"
  package static let taken = "taken"
  package static let outcomes = "outcomes"
  package static let sent = "sent"
  package static let keys = "keys"
  package static let failed = "failed"
  static let doneSuffix = ".done"
  static let deliveriesSuffix = ".deliveries"
  static let markSuffix = ".marked"
  package static let forgottenSuffix = ".forgotten"
  package static let passingPrefix = "outcome-"
  private static let free = "free"

  var root: ContainerRoot { directory.root }

  package static func pendingPath(_ batch: EntryFile) -> String { pending + "/" + batch.text }

  static func sentPath(_ batch: EntryFile) -> String { sent + "/" + batch.text }

  static func outcomePath(_ id: QueueEntryID) -> String {
    "\(outcomes)/\(id.batch.text).\(id.index)"
  }

  /// Returns the batch that a consumer's file belongs to; nil for any other file.
  package static func batch(besideWhich name: String) -> String? {
    for suffix in [doneSuffix, deliveriesSuffix] where name.hasSuffix(suffix) {
      return String(name.dropLast(suffix.count))
    }
    guard name.hasSuffix(markSuffix) else { return nil }
    return OutcomeFile.id(String(name.dropLast(markSuffix.count)))?.batch.text
  }

  static func failedPath(_ id: QueueEntryID) -> String {
    "\(failed)/\(id.batch.text).\(id.index)"
  }

  // MARK: Making

  func openOrMake() throws -> FileDescriptor { try directory.openOrMake() }

  /// Creates what is missing in the queue's directory, if the directory itself is there; a caller
  /// that finds something missing opens it again.
  func makeParts(at place: borrowing FileDescriptor) throws(Errno) {
    do throws(Errno) {
      for part in [Self.staged, Self.pending, Self.outcomes] {
        try root.makeDirectoryIfMissing(part, at: place.rawValue)
      }
      guard try !exists(Self.taken, at: place) else { return }
      try makeTaken(at: place)
    } catch {
      // It is being removed, or a sweeper was faster.
      guard error == .noSuchFile else { throw error }
    }
  }

  // Created with the one directory that it must contain, and never seen without: if two processes
  // begin at once, neither creates a second one.
  private func makeTaken(at place: borrowing FileDescriptor) throws(Errno) {
    let path = Self.staged + "/" + Nonce.next()
    try root.makeDirectoryIfMissing(path, at: place.rawValue)
    try root.makeDirectoryIfMissing(path + "/" + Self.free, at: place.rawValue)
    do throws(Errno) {
      try rename(path, at: place.rawValue, to: Self.taken, at: place.rawValue, .keep)
    } catch {
      discardDirectory(path, at: place)
      guard error == .alreadyExists else { throw error }
    }
  }

  private func discardDirectory(_ path: String, at place: borrowing FileDescriptor) {
    for path in [path + "/" + Self.free, path] {
      do throws(Errno) {
        try removeDirectory(path, at: place.rawValue)
      } catch {
        // Swept already, or swept by the next consumer.
        continue
      }
    }
  }

  func removeEmptyTaken(at place: borrowing FileDescriptor) throws(Errno) {
    do throws(Errno) {
      try removeDirectory(Self.taken, at: place.rawValue)
    } catch {
      // Another process is doing the same, or has done it.
      guard error == .noSuchFile || error == .directoryNotEmpty else { throw error }
    }
  }

  func exists(_ path: String, at place: borrowing FileDescriptor) throws(Errno) -> Bool {
    try SystemCalls.exists(path, at: place.rawValue)
  }

  // MARK: Storing

  /// Writes a file and gives it its name in one step.
  ///
  /// - Parameters:
  ///   - receipt: a second name for the same file, which it gets after the first.
  ///   - prepare: what is to be done with the staged file before that.
  /// - Throws: `.alreadyExists` if the name is taken.
  func store(
    _ bytes: [UInt8], as path: String, receipt: String? = nil, durable: Bool = false,
    at place: borrowing FileDescriptor, prepare: ContainerRoot.Publication? = nil
  ) throws(Errno) {
    try root.store(bytes, staging: Self.staged + "/", durable: durable, at: place) {
      staged, place throws(Errno) in
      try prepare?(staged, place)
      if let receipt {
        try publish(staged, as: path, receipt, bytes, durable, at: place)
      } else {
        try rename(staged, at: place.rawValue, to: path, at: place.rawValue, .keep)
      }
    }
  }

  // The staged name becomes the receipt's, so the file is there however fast the consumer handles
  // the other; and a receipt is never there before the entry is stored.
  private func publish(
    _ staged: String, as path: String, _ receipt: String, _ bytes: [UInt8], _ isDurable: Bool,
    at place: borrowing FileDescriptor
  ) throws(Errno) {
    do throws(Errno) {
      try link(staged, at: place.rawValue, to: path, at: place.rawValue)
    } catch {
      // Some file systems have no second names; the receipt is then a copy (link(2)).
      guard [.notPermitted, .unsupported, .noFunction].contains(error) else { throw error }
      try rename(staged, at: place.rawValue, to: path, at: place.rawValue, .keep)
      return try withdrawingAfterFailure(path, at: place) { place throws(Errno) in
        try store(bytes, as: receipt, durable: isDurable, at: place)
      }
    }
    try withdrawingAfterFailure(path, at: place) { place throws(Errno) in
      try rename(staged, at: place.rawValue, to: receipt, at: place.rawValue, .keep)
    }
  }

  // An entry that was not reported to its sender as stored must not be delivered.
  private func withdrawingAfterFailure(
    _ path: String, at place: borrowing FileDescriptor,
    _ body: (borrowing FileDescriptor) throws(Errno) -> Void
  ) throws(Errno) {
    do throws(Errno) {
      try body(place)
    } catch {
      let cause = error
      let isWithdrawn = try discard(path, at: place)
      // Taken already, so the caller must not try again.
      throw isWithdrawn || cause != .noSuchFile ? cause : .deviceBusy
    }
  }

  /// - Returns: whether it was there.
  @discardableResult
  func discard(_ path: String, at place: borrowing FileDescriptor) throws(Errno) -> Bool {
    try removeIfPresent(path, at: place.rawValue)
  }

  /// Synchronizes the names in a part of the queue to the disk.
  func synchronize(_ part: String, at place: borrowing FileDescriptor) throws(Errno) {
    try FileDescriptor.openBeneath(part, at: place.rawValue, [.readOnly, .directory]).synchronize()
  }

  /// Removes what processes left that died while writing.
  func sweep(at place: borrowing FileDescriptor) throws(Errno) {
    for entry in try SharedContainer.entries(Self.staged, at: place.rawValue) ?? [] {
      let path = Self.staged + "/" + entry.name.text
      if entry.isDirectory == true {
        discardDirectory(path, at: place)
      } else {
        ContainerRoot.sweepStaged(path, at: place.rawValue)
      }
    }
  }

  // MARK: Reading

  /// Returns the batches in a part of the queue, in no order; nil if there is no such directory.
  func batches(
    _ part: String, at place: borrowing FileDescriptor
  ) throws(Errno) -> [EntryFile]? {
    try SharedContainer.entries(part, at: place.rawValue)?
      .compactMap { EntryFile(bytes: $0.name.bytes) }
  }

  /// Returns the name of the one directory in `taken/`; nil if there is none.
  func consumer(at place: borrowing FileDescriptor) throws(Errno) -> String? {
    try SharedContainer.entries(Self.taken, at: place.rawValue)?
      .first { $0.isDirectory != false }?.name.text
  }

  /// Returns the bytes of a file; nil if there is none. Throws `Unreadable` if it belongs to others
  /// or is too large.
  func read(_ path: String, at place: borrowing FileDescriptor) throws -> [UInt8]? {
    let content = try root.readEntry(
      path, at: place.rawValue, beside: place.status(),
      maximumBytes: PropertyListLimits.standard.maximumBytes)
    switch content {
    case .bytes(let bytes): return bytes
    case .missing: return nil
    case .foreign(let error):
      throw Batch.Unreadable(reason: "it is no file of this container's users (\(error))")
    }
  }
}
