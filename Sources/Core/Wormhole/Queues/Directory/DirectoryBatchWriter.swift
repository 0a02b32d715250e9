import Synchronization
import WormholePropertyLists
import WormholeSystem

/// The writer of a sender's batches, one after another: stamps them, checks the limits, and stores.
final class DirectoryBatchWriter: BatchWriter {
  private let queue: PlainQueue
  private let directory: OpenQueue
  private let sender: String
  private let state: Mutex<State>

  private struct State {
    /// The stamp of the last batch; nil before the first scan for what this sender left.
    var last: UInt64?
    /// The batches of this sender that waited before that, if they were listed.
    var waiting: [EntryFile]?
    var admission: Admission
    var expiry = RecordExpiry()
    /// When to look again for what this sender left, while its stamps are ahead of the clock.
    var nextLook = ContinuousClock.now
    /// The status of the queue's directory when it was last synchronized to the disk.
    var durable: FileStatus?
  }

  init(_ queue: PlainQueue, _ sender: String, limits: QueueLimits) {
    self.queue = queue
    directory = OpenQueue(queue)
    self.sender = sender
    state = Mutex(State(admission: Admission(entries: limits.entries, bytes: limits.bytes)))
  }

  // MARK: Storing

  func store(
    _ bytes: [UInt8], _ entries: [Batch.Entry], position: Submission.Schedule, isDurable: Bool,
    under role: RoleProof?
  ) throws -> EntryFile {
    let name =
      try role?.whileHeld(in: queue.container) { [self] lease in
        try store(bytes, entries, position: position, isDurable: isDurable, through: lease)
      } ?? store(bytes, entries, position: position, isDurable: isDurable)
    expire()
    return name
  }

  /// - Parameter lease: the lease of a role; nothing is stored once it was taken over.
  private func store(
    _ bytes: [UInt8], _ entries: [Batch.Entry], position: Submission.Schedule, isDurable: Bool,
    through lease: Lease? = nil
  ) throws -> EntryFile {
    let count = entries.count
    let keepsReceipt = entries.contains(where: \.keepsReceipt)
    let keys = Batch(entries).keys
    for _ in 0..<renameRaceLimit {
      let place = try directory.openOrMake()
      let order = try nextStamp(at: place)
      let scope = isDurable ? try place.commitScope() : .content
      let name = EntryFile(
        order: order, sender: sender, count: count, bytes: bytes.count,
        due: position.delay.map { order + min($0, .max - order) })
      do throws(Errno) {
        // A separate part, because most queues do not need it.
        if keepsReceipt { try place.makeDirectory(QueueDirectory.sent) }
        try place.store(
          bytes, as: QueueDirectory.pendingPath(name),
          receipt: keepsReceipt ? QueueDirectory.sentPath(name) : nil, durable: isDurable,
          scope: scope, through: lease
        ) { staged throws(Errno) in try place.mark(staged, as: name, keys) }
      } catch {
        for (index, key) in keys { place.unmark(.init(batch: name, index: index), key) }
        switch error {
        // Not yet created, or removed in the meantime.
        case .noSuchFile:
          try lease?.confirm()
          try place.makeParts()
          directory.forget()
        // Another process sends under the same name: try the next stamp.
        case .alreadyExists: break
        default: throw error
        }
        continue
      }
      if isDurable {
        try synchronize(place, scope, keepsReceipt: keepsReceipt, hasKeys: !keys.isEmpty)
      }
      state.withLock { $0.admission.noteStored(name) }
      return name
    }
    throw Errno.deviceBusy
  }

  private func expire() {
    guard state.withLock({ $0.expiry.begin() }) else { return }
    // The entry is stored. The next sender or a sweep tries this again.
    _ = try? directory.openOrMake().expire(
      of: sender, now: queue.clock(), limit: RecordExpiry.limit)
  }

  /// Stores a file from elsewhere in the queue as a batch of one.
  ///
  /// - Returns: nil if it no longer exists.
  func adopt(_ path: String) throws -> QueueEntryID? {
    for _ in 0..<renameRaceLimit {
      let place = try directory.openOrMake()
      try place.makeParts()
      let order = try nextStamp(at: place)
      do throws(Errno) {
        let bytes = Int(try place.fileStatus(path).size)
        let name = EntryFile(
          order: order, sender: sender, count: 1, bytes: bytes)
        try place.moveAlone(path, to: QueueDirectory.pendingPath(name))
        return QueueEntryID(batch: name, index: 0)
      } catch {
        if error == .noSuchFile { return nil }
        guard error == .alreadyExists else { throw error }
      }
    }
    throw Errno.deviceBusy
  }

  // The name in `pending/` must be on the disk; it does no harm if the name in `staged/` reappears,
  // because it is swept there. The directories above must be on the disk as well; they change when
  // something is created in them for the first time. See `SynchronizedNames` for how a scan can
  // tell. The fsync of the file may have done some of it, or all.
  private func synchronize(
    _ place: QueueDirectory, _ scope: CommitScope, keepsReceipt: Bool, hasKeys: Bool
  ) throws {
    guard !scope.isEverything else { return }
    if keepsReceipt { try place.synchronize(QueueDirectory.sent) }
    let hasOneName = !keepsReceipt && !hasKeys
    if scope == .content || !hasOneName { try place.synchronize(QueueDirectory.pending) }
    let status = try place.status()
    if state.withLock(\.durable) != status {
      let now = realTime()
      try place.synchronize(".")
      if status.isTrusted(at: now) { state.withLock { $0.durable = status } }
    }
    try queue.directory.synchronizeNames()
  }

  /// How far the last stamp may be ahead of the clock: a minute, which gradual corrections never
  /// reach.
  private static let lead: UInt64 = 60_000_000_000

  private func nextStamp(at place: QueueDirectory) throws -> UInt64 {
    let now = queue.clock()
    var last = try state.withLock(\.last) ?? highestStamp(at: place)
    // The clock was ahead. This no longer matters once nothing that was sent then is left.
    if last > now + Self.lead, state.withLock({ $0.nextLook <= .now }) {
      state.withLock { $0.nextLook = .now + .seconds(1) }
      last = try highestStamp(at: place)
    }
    let stamp = EntryFile.order(after: last, now: now)
    state.withLock { ($0.last, $0.waiting) = (stamp, nil) }
    return stamp
  }

  private func highestStamp(at place: QueueDirectory) throws -> UInt64 {
    let waiting = state.withLock(\.waiting)
    var batches = waiting ?? []
    // In this order an entry that is taken meanwhile is seen in one of the two.
    _ = try place.search(pending: waiting == nil) { part -> Void? in
      batches += try place.batches(part) ?? []
      return nil
    }
    batches += try place.batches(QueueDirectory.sent) ?? []
    batches += try place.ids(in: QueueDirectory.outcomes).map(\.batch)
    return batches.filter { $0.sender == sender }.map(\.order).max() ?? 0
  }

  // MARK: Limits

  func refusal(of count: Int, _ size: Int) throws -> Admission? {
    if state.withLock({ $0.admission.allows(count, size) }) { return nil }
    return try queue.attempt("look at what waits in") {
      let place = try directory.openOrMake()
      let waiting = try place.batches(QueueDirectory.pending) ?? []
      return state.withLock { state in
        if state.last == nil { state.waiting = waiting.filter { $0.sender == sender } }
        return state.admission.note(waiting: waiting, for: count, size) ? nil : state.admission
      }
    }
  }
}
