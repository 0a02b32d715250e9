import Synchronization
import WormholePropertyLists
package import WormholeSystem

/// `queues/<name>/`, open: its files, and the one step that creates or moves each of them.
///
/// ```
/// staged/<nonce>                  a batch or an outcome being written; its writer has it locked
/// pending/<batch>                 stored: complete before it was renamed to this name
/// taken/<consumer>/<batch>        taken: renamed from pending/; unlinked when all is settled
/// taken/<consumer>/<part>         one entry of a shared batch, on its way back to pending/
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
/// **Consuming.** A consumer has a directory of its own in `taken/`. It renames its predecessor's
/// directory to that name, and takes over the directories of workers that are gone. Every step of a
/// consumer is a call on a path through a directory of its own; so a consumer that was replaced
/// while it was stopped finds nothing there (ENOENT), takes nothing and settles nothing.
///
/// **Cancelled or delivered.** The batch is exchanged in `pending/` with one in which the entry is
/// cancelled. Taking moves whichever of the two has that name.
///
/// **What a crash leaves**: an unlocked file in `staged/`, removed by the next process that opens
/// the queue to consume, and batches in `taken/`, which the next consumer delivers again.
package final class QueueDirectory: Sendable {
  package let root: ContainerRoot
  package let descriptor: FileDescriptor
  private let firstStatus = Mutex<FileStatus?>(nil)

  package init(_ descriptor: consuming FileDescriptor, in root: ContainerRoot) {
    self.descriptor = descriptor
    self.root = root
  }

  package static let staged = "staged"
  package static let pending = "pending"
  package static let taken = "taken"
  package static let outcomes = "outcomes"
  package static let sent = "sent"
  package static let keys = "keys"
  package static let failed = "failed"
  package static let doneSuffix = ".done"
  package static let deliveriesSuffix = ".deliveries"
  package static let markSuffix = ".marked"
  package static let forgottenSuffix = ".forgotten"
  package static let passingPrefix = "outcome-"
  private static let free = "free"

  /// Returns whether a directory in `taken/` has no owner, so that each consumer may take it.
  static func isFree(_ directory: String) -> Bool {
    directory == free || directory.hasPrefix(free + "-")
  }

  package static func pendingPath(_ batch: EntryFile) -> String { pending + "/" + batch.text }

  package static func takenPath(_ consumer: String) -> String { taken + "/" + consumer }

  /// The directory of a consumer that has ended, in the hands of another one.
  static func takenOver(by consumer: String, number: Int) -> String { "\(consumer).\(number)" }

  static func isTakenOver(_ directory: String) -> Bool {
    directory.utf8.contains(UInt8(ascii: "."))
  }

  /// The path of a batch that a consumer has taken.
  static func takenPath(_ consumer: String, _ batch: String) -> String {
    NameWriter.text(joining: [taken, "/", consumer, "/", batch])
  }

  package static func sentPath(_ batch: EntryFile) -> String { sent + "/" + batch.text }

  package static func outcomePath(_ id: QueueEntryID) -> String {
    "\(outcomes)/\(id.batch.text).\(id.index)"
  }

  /// Returns the batch that a consumer's file belongs to; nil for any other file.
  package static func batch(besideWhich name: String) -> String? {
    for suffix in [doneSuffix, deliveriesSuffix] where name.hasSuffix(suffix) {
      return String(name.dropLast(suffix.count))
    }
    guard name.hasSuffix(markSuffix) else { return nil }
    let rest = name.dropLast(markSuffix.count)
    return rest.lastIndex(of: ".").flatMap { EntryFile(rest[..<$0]) }?.text
  }

  package static func failedPath(_ id: QueueEntryID) -> String {
    "\(failed)/\(id.batch.text).\(id.index)"
  }

  // MARK: Making

  /// Creates missing parts of the queue's directory, if the directory itself exists; a caller that
  /// misses a part opens the directory again.
  package func makeParts() throws(Errno) {
    // Nil if it is being removed, or a sweeper was faster.
    for part in [Self.staged, Self.pending, Self.outcomes] {
      guard try ifPresent(makeDirectory(part)) != nil else { return }
    }
    if try !exists(Self.taken) { _ = try ifPresent(makeTaken()) }
  }

  // Created together with the one directory that it must contain, and never seen without it: if two
  // processes begin at once, neither creates a second one.
  private func makeTaken() throws(Errno) {
    let path = Self.staged + "/" + Nonce.next()
    try makeDirectory(path)
    try makeDirectory(path + "/" + Self.free)
    do throws(Errno) {
      try move(path, to: Self.taken, .keep)
    } catch {
      discardStaged(path)
      guard error == .alreadyExists else { throw error }
    }
  }

  func discardStaged(_ path: String) {
    for path in [path + "/" + Self.free, path] {
      // Swept already, or swept by the next consumer.
      _ = try? removeIfEmpty(path)
    }
  }

  private static func freePath() -> String { "\(taken)/\(free)-\(Nonce.next())" }

  /// Gives all others the directory of a consumer that is gone, unless another process was faster.
  ///
  /// - Returns: its new name; nil if it had nothing for them.
  func giveBack(_ directory: String) throws(Errno) -> String? {
    let path = Self.takenPath(directory)
    guard try !removeIfEmpty(path) else { return nil }
    let free = Self.freePath()
    guard try ifPresent(move(path, to: free)) != nil else { return nil }
    return String(free.dropFirst(Self.taken.count + 1))
  }

  // MARK: Storing

  /// Writes a file and gives it its name in one step.
  ///
  /// - Parameters:
  ///   - receipt: a second name for the same file, which it gets after the first.
  ///   - durable: whether it is on the disk afterwards.
  ///   - scope: what else its fsync has to flush. Unless that is the content alone, the fsync comes
  ///     last; a loss of power before it may leave the names without the content.
  ///   - lease: the lease of a role, through which the file gets its name: never after a takeover.
  ///     Its receipt is then a copy.
  ///   - prepare: an action on the staged file before that.
  /// - Throws: `.alreadyExists` if the name is taken.
  package func store(
    _ bytes: [UInt8], as path: String, receipt: String? = nil, durable: Bool = false,
    scope: CommitScope = .content, through lease: Lease? = nil,
    prepare: (_ staged: String) throws(Errno) -> Void = { _ in }
  ) throws(Errno) {
    let here = descriptor.rawValue
    let isLast = durable && scope != .content
    try root.store(bytes, staging: Self.staged + "/", at: here) { staged, file throws(Errno) in
      if durable, !isLast { try file.synchronize() }
      try prepare(staged)
      // Some file systems have no second names; the receipt is then a copy (link(2)).
      var isLinked = false
      if receipt != nil, lease == nil {
        isLinked =
          try tolerating([.notPermitted, .unsupported, .noFunction], link(staged, to: path)) != nil
      }
      if let lease {
        try move(staged, to: path, through: lease)
      } else if !isLinked {
        try move(staged, to: path, .keep)
      }
      if let receipt {
        try withdrawingAfterFailure(path) { () throws(Errno) in
          // The staged name becomes the receipt's, so the file exists however fast the consumer
          // handles the other name; and a receipt never exists before its entry is stored.
          if isLinked {
            try move(staged, to: receipt, .keep)
          } else {
            try store(bytes, as: receipt, durable: durable)
          }
        }
      }
      guard isLast else { return }
      do throws(Errno) {
        try file.synchronize()
      } catch {
        // Its content may be lost, so no process may find it.
        if let receipt { try discard(receipt) }
        try discard(path)
        throw error
      }
    }
  }

  // By rule 2 of the lease: the file is in the lease's own directory before it gets its name. A
  // process that takes the lease over removes it, or the directory is gone: `.noSuchFile`.
  private func move(
    _ staged: String, to path: String, through lease: Lease
  ) throws(Errno) {
    let (here, held) = (descriptor.rawValue, lease.stagingPlace.directory)
    let entry = lease.nextEntry()
    try rename(staged, at: here, to: entry, at: held)
    do throws(Errno) {
      try rename(entry, at: held, to: path, at: here, .keep)
    } catch {
      try removeIfPresent(entry, at: held)
      throw error
    }
  }

  /// What an fsync of a file stored here flushes to the disk.
  package func commitScope() throws(Errno) -> CommitScope {
    try root.commitScope(on: knownStatus().device)
  }

  // An entry that was not reported to its sender as stored must not be delivered.
  private func withdrawingAfterFailure(
    _ path: String, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    do throws(Errno) {
      try body()
    } catch {
      let isWithdrawn = try discard(path)
      // Taken already, so the caller must not try again.
      throw isWithdrawn || error != .noSuchFile ? error : .deviceBusy
    }
  }

  // MARK: Reading

  /// Returns the batches in a part of the queue, in no order; nil if there is no such directory.
  package func batches(_ part: String) throws(Errno) -> [EntryFile]? {
    try list(part)?.compactMap { EntryFile(bytes: $0.name.bytes) }
  }

  /// Returns the batches in a part of the queue as they are to be delivered; none if there is no such
  /// directory.
  ///
  /// - Complexity: Open, two calls, fstatfs and close for a short directory of a local file system.
  package func ordered(_ part: String) throws(Errno) -> [EntryFile] {
    let found = try ifPresent(openFile(part, [.readOnly, .directory]))
    guard let directory = found else { return [] }
    return try EntryFile.ordered { () throws(Errno) in
      var batches: [EntryFile] = []
      var calls = 0
      try directory.rewind()
      // It may be removed between the two listings.
      while try ifPresent(
        directory.nextEntries { entry in
          if let batch = EntryFile(bytes: entry.name.bytes) { batches.append(batch) }
        }) == true
      { calls += 1 }
      // The kernel holds the directory's lock during a call, so no process on this machine renames
      // anything into it meanwhile.
      guard calls == 1, !batches.isEmpty else { return (batches, false) }
      return (batches, try directory.fileSystem().networkName == nil)
    }
  }

  /// Returns the names of the directories in `taken/`, one for each consumer and more if it has
  /// taken over others.
  package func consumers() throws(Errno) -> Set<String> {
    // A planted name that is not UTF-8 would be another name as a path.
    Set(
      try (list(Self.taken) ?? []).filter {
        $0.isDirectory != false && FileName($0.name.text) == $0.name
      }.map(\.name.text))
  }

  /// Looks into `pending/`, and then into the consumers' directories. If a consumer is replaced
  /// meanwhile, its directory gets another name, which is then examined.
  ///
  /// Entries move that way; one that was stored with others moves back once, when a worker shares them.
  /// So two rounds miss none.
  ///
  /// - Parameters:
  ///   - pending: false if the caller has looked into `pending/` already, in the first round.
  ///   - isAlone: whether the caller looks for an entry that was stored alone.
  ///   - look: returns nil if the part, relative to the queue's directory, has nothing.
  package func search<Found>(
    pending: Bool = true, isAlone: Bool = false, _ look: (_ part: String) throws -> Found?
  ) throws -> Found? {
    for round in 0..<(isAlone ? 1 : 2) {
      if pending || round > 0, let found = try look(Self.pending) { return found }
      if let found = try searchTaken(look) { return found }
    }
    return nil
  }

  private func searchTaken<Found>(_ look: (_ part: String) throws -> Found?) throws -> Found? {
    for _ in 0..<renameRaceLimit {
      let consumers = try consumers()
      for consumer in consumers {
        if let found = try look(Self.takenPath(consumer)) { return found }
      }
      // Otherwise one of them got another name meanwhile.
      if try self.consumers() == consumers { return nil }
    }
    throw Errno.deviceBusy
  }

  /// Returns the file in a part of the queue that stands for an entry: that of its batch, or its own.
  package func file(of id: QueueEntryID, in part: String) throws(Errno) -> EntryFile? {
    for file in id.files where try exists(part + "/" + file.text) { return file }
    return nil
  }

  /// Returns the bytes of a file; nil if there is none. Throws `Unreadable` if it belongs to others
  /// or is too large.
  package func read(_ path: String) throws -> [UInt8]? {
    let content = try root.readEntryAgain(
      path, at: descriptor.rawValue, beside: knownStatus(),
      maximumBytes: PropertyListLimits.standard.maximumBytes)
    switch content {
    case .bytes(let bytes, _): return bytes
    case .missing: return nil
    case .foreign(let error):
      let isRefused = error == .accessDenied || error == .notPermitted
      throw Batch.Unreadable(
        reason: error == .inputOutput
          ? "\(error)" : "it is not a file of this container's users (\(error))",
        refusal: isRefused ? error : nil)
    }
  }

  /// Returns why a batch cannot be read; nil if it can be, or there is no such file.
  package func fault(of name: EntryFile, in part: String) throws -> Batch.Unreadable? {
    do {
      _ = try read(part + "/" + name.text).map { try Batch(bytes: $0, count: name.total) }
      return nil
    } catch let error as Batch.Unreadable {
      return error
    }
  }

  /// Returns a batch; nil if there is no such file, or it is unreadable: its consumer finds that,
  /// too, and reports it.
  package func batch(_ name: EntryFile, in part: String) throws -> Batch? {
    do {
      return try read(part + "/" + name.text).map { try Batch(bytes: $0, count: name.total) }
    } catch is Batch.Unreadable {
      return nil
    }
  }
}

/// Calls on a path in the queue's directory.
extension QueueDirectory {
  package func status() throws(Errno) -> FileStatus { try descriptor.status() }

  /// Returns the directory's status at the first request: its owner and its place.
  package func knownStatus() throws(Errno) -> FileStatus {
    if let status = firstStatus.withLock({ $0 }) { return status }
    let status = try status()
    firstStatus.withLock { $0 = status }
    return status
  }

  package func fileStatus(_ path: String) throws(Errno) -> FileStatus {
    try WormholeSystem.fileStatus(path, at: descriptor.rawValue)
  }

  package func exists(_ path: String) throws(Errno) -> Bool {
    try WormholeSystem.exists(path, at: descriptor.rawValue)
  }

  package func openFile(_ path: String, _ options: OpenOptions) throws(Errno) -> FileDescriptor {
    try .openBeneath(path, at: descriptor.rawValue, options)
  }

  /// - Returns: nil if there is no such directory.
  package func list(_ path: String) throws(Errno) -> [FileDescriptor.Entry]? {
    try ContainerRoot.entries(path, at: descriptor.rawValue)
  }

  package func makeDirectory(_ path: String) throws(Errno) {
    try root.makeDirectoryIfMissing(path, at: descriptor.rawValue)
  }

  package func createFile(_ path: String) throws(Errno) -> FileDescriptor {
    try root.access.createFile(path, at: descriptor.rawValue)
  }

  package func link(_ path: String, to other: String) throws(Errno) {
    try WormholeSystem.link(path, at: descriptor.rawValue, to: other, at: descriptor.rawValue)
  }

  /// - Parameter target: the directory of the new path; nil for the queue's.
  package func move(
    _ path: String, to other: String, at target: Int32? = nil, _ mode: RenameMode = .replace
  ) throws(Errno) {
    let here = descriptor.rawValue
    try rename(path, at: here, to: other, at: target ?? here, mode)
  }

  package func remove(_ path: String) throws(Errno) {
    try removeFile(path, at: descriptor.rawValue)
  }

  /// - Returns: whether it existed.
  @discardableResult
  package func discard(_ path: String) throws(Errno) -> Bool {
    try removeIfPresent(path, at: descriptor.rawValue)
  }

  /// - Returns: whether it existed and was empty.
  @discardableResult
  package func removeIfEmpty(_ path: String) throws(Errno) -> Bool {
    try WormholeSystem.removeIfEmpty(path, at: descriptor.rawValue)
  }

  /// Sets the times of a directory, which is an event for those that watch it.
  package func touch(_ path: String) throws(Errno) {
    try WormholeSystem.touch(path, at: descriptor.rawValue)
  }

  /// Synchronizes the names in a part of the queue to the disk.
  package func synchronize(_ part: String) throws(Errno) {
    try openFile(part, [.readOnly, .directory]).synchronize()
  }
}
