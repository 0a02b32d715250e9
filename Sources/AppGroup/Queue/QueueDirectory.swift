import PropertyLists
import SystemCalls

/// `queues/<name>/`: what lies there, and the one step that makes or moves each of it.
///
/// ```
/// staged/<nonce>                  a batch or an outcome being written; its writer has it locked
/// pending/<batch>                 stored: complete before it was renamed to this name
/// taken/<consumer>/<batch>        taken: renamed from pending/; unlinked when all is settled
/// taken/<consumer>/<batch>.done   which entries of it are settled, a line each, appended
/// taken/<consumer>/<batch>.deliveries how often each was delivered; see `DeliveryLog`
/// taken/<consumer>/<batch>.<index>.marked how far its consumer has come; see `QueueEntry.mark`
/// taken/<consumer>/outcome-<nonce> a note on its way from staged/ to outcomes/
/// outcomes/<batch>.<index>        cancelled, expired or failed, until the sender has learned it
/// failed/<batch>.<index>          what its consumer gave up and kept; see `QueueFailure`
/// sent/<batch>                    a second name of a stored batch, for a sender who wants to find
///                                 its entries and their ends again; see `QueueReceipt`
/// sent/<batch>.forgotten          which entries of it the sender has forgotten, a line each
/// keys/<sender>%2F<key>/…         entries that a newer one with the same key supersedes
/// lease/                          who cancels or supersedes holds it, as it is a value's
/// ```
///
/// **Who consumes.** There is one directory in `taken/`, and whoever wants to consume renames it to a
/// name of its own. Every step of a consumer is a call on a path through that name; so one that was
/// replaced while it was stopped finds nothing there (ENOENT), takes nothing and settles nothing.
///
/// **Cancelled or delivered.** The batch is exchanged in `pending/` with one in which the entry is
/// cancelled. Taking it moves what has that name, one or the other.
///
/// **What a crash leaves**: an unlocked file in `staged/`, removed by the next who opens the queue to
/// consume, and what is in `taken/`, which the next consumer delivers again.
struct QueueDirectory: Sendable {
  let directory: NamedDirectory

  static let staged = "staged"
  static let pending = "pending"
  static let taken = "taken"
  static let outcomes = "outcomes"
  static let sent = "sent"
  static let keys = "keys"
  static let failed = "failed"
  static let doneSuffix = ".done"
  static let deliveriesSuffix = ".deliveries"
  static let markSuffix = ".marked"
  static let forgottenSuffix = ".forgotten"
  static let passingPrefix = "outcome-"
  private static let free = "free"

  var root: ContainerRoot { directory.root }

  static func pendingPath(_ batch: BatchName) -> String { pending + "/" + batch.text }

  static func sentPath(_ batch: BatchName) -> String { sent + "/" + batch.text }

  static func outcomePath(_ id: QueueEntryID) -> String {
    "\(outcomes)/\(id.batch.text).\(id.index)"
  }

  /// Of which batch a consumer notes something in a file; nil for any other file.
  static func batch(besideWhich name: String) -> String? {
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

  /// Makes what is missing in the queue's directory, as far as that is there itself: who finds
  /// something missing opens it anew.
  func makeParts(at place: borrowing FileDescriptor) throws(Errno) {
    do throws(Errno) {
      for part in [Self.staged, Self.pending, Self.outcomes] {
        try root.makeDirectoryIfMissing(part, at: place.rawValue)
      }
      guard try !exists(Self.taken, at: place) else { return }
      try makeTaken(at: place)
    } catch {
      // It is being removed, or a sweeper was quicker.
      guard error == .noSuchFile else { throw error }
    }
  }

  // Made with the one directory that there must be in it, and only seen so: of two that begin at
  // once neither makes a second one.
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
      // Another is doing the same, or has done it.
      guard error == .noSuchFile || error == .directoryNotEmpty else { throw error }
    }
  }

  func exists(_ path: String, at place: borrowing FileDescriptor) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try fileStatus(path, at: place.rawValue)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  // MARK: Storing

  typealias Preparation = (_ staged: String, borrowing FileDescriptor) throws(Errno) -> Void

  /// Writes a file and gives it its name in one step.
  ///
  /// - Parameters:
  ///   - receipt: a second name for the same file, which it gets when it has the first.
  ///   - prepare: what is to be done with the staged file before that.
  /// - Throws: `.alreadyExists` when the name is taken.
  func store(
    _ bytes: [UInt8], as path: String, receipt: String? = nil, durable: Bool = false,
    at place: borrowing FileDescriptor, prepare: Preparation? = nil
  ) throws(Errno) {
    for _ in 0..<interruptionLimit {
      let staged = Self.staged + "/" + Nonce.next()
      let file = try root.createFile(staged, at: place.rawValue)
      // A sweeper that has the lock now removes the file: then another one.
      guard try file.tryLock(.exclusive) else { continue }
      do throws(Errno) {
        try file.writeAll(bytes)
        if durable { try file.synchronize() }
        try prepare?(staged, place)
        if let receipt {
          try publish(staged, as: path, receipt, bytes, durable, at: place)
        } else {
          try rename(staged, at: place.rawValue, to: path, at: place.rawValue, .keep)
        }
        return
      } catch {
        if error == .noSuchFile, try file.status().links == 0 { continue }
        let cause = error
        try discard(staged, at: place)
        throw cause
      }
    }
    throw .deviceBusy
  }

  // The staged name becomes the receipt's, so the file is there however quick the consumer is with
  // the other one; and a receipt is never there before the entry is stored.
  private func publish(
    _ staged: String, as path: String, _ receipt: String, _ bytes: [UInt8], _ isDurable: Bool,
    at place: borrowing FileDescriptor
  ) throws(Errno) {
    do throws(Errno) {
      try link(staged, at: place.rawValue, to: path, at: place.rawValue)
    } catch {
      // Some file systems have no second names: then the receipt is a copy (link(2)).
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

  // What was not acknowledged to its sender as stored is not to be delivered.
  private func withdrawingAfterFailure(
    _ path: String, at place: borrowing FileDescriptor,
    _ body: (borrowing FileDescriptor) throws(Errno) -> Void
  ) throws(Errno) {
    do throws(Errno) {
      try body(place)
    } catch {
      let cause = error
      let isWithdrawn = try discard(path, at: place)
      // Taken already: then the caller must not try again.
      throw isWithdrawn || cause != .noSuchFile ? cause : .deviceBusy
    }
  }

  /// - Returns: whether it was there.
  @discardableResult
  func discard(_ path: String, at place: borrowing FileDescriptor) throws(Errno) -> Bool {
    do throws(Errno) {
      try removeFile(path, at: place.rawValue)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  /// Puts the names in a part of the queue on the disk.
  func synchronize(_ part: String, at place: borrowing FileDescriptor) throws(Errno) {
    try FileDescriptor.openBeneath(part, at: place.rawValue, [.readOnly, .directory]).synchronize()
  }

  /// Removes what those left who died while they wrote.
  func sweep(at place: borrowing FileDescriptor) throws(Errno) {
    for entry in try SharedContainer.entries(Self.staged, at: place.rawValue) ?? [] {
      let path = Self.staged + "/" + entry.name.text
      if entry.isDirectory == true {
        discardDirectory(path, at: place)
        continue
      }
      do throws(Errno) {
        let file = try FileDescriptor.openBeneath(
          path, at: place.rawValue, [.readOnly, .nonBlocking])
        if try file.tryLock(.exclusive) { try discard(path, at: place) }
      } catch {
        // Renamed by its writer, or none of ours.
        continue
      }
    }
  }

  // MARK: Reading

  /// The batches in a part of the queue, in no order; nil when there is no such directory.
  func batches(
    _ part: String, at place: borrowing FileDescriptor
  ) throws(Errno) -> [BatchName]? {
    try SharedContainer.entries(part, at: place.rawValue)?
      .compactMap { BatchName(bytes: $0.name.bytes) }
  }

  /// The name of the one directory in `taken/`; nil when there is none.
  func consumer(at place: borrowing FileDescriptor) throws(Errno) -> String? {
    try SharedContainer.entries(Self.taken, at: place.rawValue)?
      .first { $0.isDirectory != false }?.name.text
  }

  /// The bytes of a file; nil when there is none, `Unreadable` for what is not ours or too large.
  func read(_ path: String, at place: borrowing FileDescriptor) throws -> [UInt8]? {
    do throws(Errno) {
      let file = try FileDescriptor.openBeneath(
        path, at: place.rawValue, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular, root.access.trusts(status, in: try place.status()) else {
        throw .tooManyLinks
      }
      return try file.readToEnd(
        expectedBytes: Int(status.size), maximumBytes: PropertyListLimits.standard.maximumBytes)
    } catch {
      switch error {
      case .noSuchFile: return nil
      case .tooManyLinks, .noSuchDevice, .fileTooLarge, .isDirectory:
        throw Batch.Unreadable(reason: "it is no file of ours (\(error))")
      default: throw error
      }
    }
  }
}
