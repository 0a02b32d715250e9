import PropertyLists
import Synchronization
import SystemCalls

/// Where a sender's batches go out, one after another: stamps, counts against the limits, stores.
final class BatchOutlet: Sendable {
  private let queue: Queue
  private let sender: String
  private let limits: Queue.Limits
  private let state = Mutex(State())

  private struct State {
    /// The stamp of the last batch; nil before the first look at what this sender left.
    var last: UInt64?
    /// How much may still be stored before the next look.
    var entries = 0
    var bytes = 0
    /// The queue's directory as it was when it was put on the disk last.
    var durable: FileStatus?
    /// When what has expired is removed next.
    var sweep = ContinuousClock.now
  }

  init(_ queue: Queue, _ sender: String, _ limits: Queue.Limits) {
    self.queue = queue
    self.sender = sender
    self.limits = limits
  }

  /// Stores entries, as one file where that is possible, and tells each send how it ended.
  func write(_ submissions: [Submission]) {
    guard submissions.count > 1 else { return writeEach(submissions) }
    do {
      let bytes = try bytes(of: submissions)
      guard try admits(submissions.count, bytes.count) else { return writeEach(submissions) }
      try store(submissions, bytes)
    } catch is PropertyListError {
      // One of them cannot be stored, or not all together.
      writeEach(submissions)
    } catch {
      for submission in submissions { submission.settle(.failure(error)) }
    }
  }

  // As many as the limits allow: once one is refused, so is the rest, without a look for each.
  private func writeEach(_ submissions: [Submission]) {
    var refusal: AppGroupError?
    for submission in submissions {
      if let refusal {
        submission.settle(.failure(refusal))
      } else {
        refusal = writeOne(submission)
      }
    }
  }

  /// - Returns: the error, if the queue is full.
  private func writeOne(_ submission: Submission) -> AppGroupError? {
    do {
      let bytes = try bytes(of: [submission])
      guard try admits(1, bytes.count) else {
        let refusal = full()
        submission.settle(.failure(refusal))
        return refusal
      }
      try store([submission], bytes)
    } catch let error as PropertyListError {
      submission.settle(.failure(unsupported(error)))
    } catch {
      submission.settle(.failure(error))
    }
    return nil
  }

  // Written once, for all that go out together. What passes the counting passes the check.
  private func bytes(of submissions: [Submission]) throws(PropertyListError) -> [UInt8] {
    let mustCheck = submissions.contains { !$0.footprint.isSmall }
    return try Batch(submissions.map(\.entry)).bytes(mustCheck: mustCheck)
  }

  // MARK: Storing

  private func store(_ submissions: [Submission], _ bytes: [UInt8]) throws {
    let isDurable = submissions.contains { $0.durability == .durable }
    let entries = submissions.map(\.entry)
    let name = try reporting("send to \"\(queue.name)\"", path: queue.path) {
      try store(bytes, entries, isDurable)
    }
    for (index, submission) in submissions.enumerated() {
      submission.settle(.success(QueueEntryID(batch: name, index: index)))
    }
  }

  private func store(
    _ bytes: [UInt8], _ entries: [Batch.Entry], _ isDurable: Bool
  ) throws -> BatchName {
    let count = entries.count
    let keepsReceipt = entries.contains(where: \.keepsReceipt)
    let keys = keys(of: entries)
    for _ in 0..<interruptionLimit {
      let place = try queue.place.openOrMake()
      let name = BatchName(
        order: try nextStamp(at: place), sender: sender, count: count, bytes: bytes.count)
      do throws(Errno) {
        // A part of its own, for most queues have no use for it.
        if keepsReceipt {
          try queue.place.root.makeDirectoryIfMissing(QueueDirectory.sent, at: place.rawValue)
        }
        try queue.place.store(
          bytes, as: QueueDirectory.pendingPath(name),
          receipt: keepsReceipt ? QueueDirectory.sentPath(name) : nil, durable: isDurable,
          at: place
        ) { [place = queue.place] staged, directory throws(Errno) in
          try place.mark(staged, as: name, keys, at: directory)
        }
      } catch {
        for (index, key) in keys {
          queue.place.unmark(.init(batch: name, index: index), key, at: place)
        }
        switch error {
        // Not there yet, or removed meanwhile.
        case .noSuchFile: try queue.place.makeParts(at: place)
        // Another process sends under the same name: the next stamp is another one.
        case .alreadyExists: break
        default: throw error
        }
        continue
      }
      if isDurable { try synchronize(place, keepsReceipt) }
      expire(at: place)
      state.withLock { state in
        state.entries -= count
        state.bytes -= bytes.count
      }
      return name
    }
    throw Errno.deviceBusy
  }

  // Once an hour, and few: a send is not to wait for much.
  private func expire(at place: borrowing FileDescriptor) {
    let mustSweep = state.withLock { state in
      guard ContinuousClock.now >= state.sweep else { return false }
      state.sweep = .now + .seconds(3_600)
      return true
    }
    guard mustSweep else { return }
    do {
      _ = try queue.place.expire(of: sender, now: queue.clock(), limit: 64, at: place)
    } catch {
      // The entry is stored. The next sender tries it again, or a sweep.
      return
    }
  }

  /// Stores a file that lies elsewhere in the queue: a batch of one.
  ///
  /// - Returns: nil when it is not there any more.
  func adopt(_ path: String) throws -> QueueEntryID? {
    for _ in 0..<interruptionLimit {
      let place = try queue.place.openOrMake()
      try queue.place.makeParts(at: place)
      let order = try nextStamp(at: place)
      do throws(Errno) {
        let bytes = Int(try fileStatus(path, at: place.rawValue).size)
        let name = BatchName(order: order, sender: sender, count: 1, bytes: bytes)
        try rename(
          path, at: place.rawValue, to: QueueDirectory.pendingPath(name), at: place.rawValue, .keep)
        return QueueEntryID(batch: name, index: 0)
      } catch {
        if error == .noSuchFile { return nil }
        guard error == .alreadyExists else { throw error }
      }
    }
    throw Errno.deviceBusy
  }

  private func keys(of entries: [Batch.Entry]) -> [Int: String] {
    var keys: [Int: String] = [:]
    for (index, entry) in entries.enumerated() { keys[index] = entry.key }
    return keys
  }

  // The name in `pending/` must be on the disk; that it may come back in `staged/` does no harm,
  // for it is swept there. So must be those above, which change when something is made in them for
  // the first time. How a look tells: see `SynchronizedNames`.
  private func synchronize(_ place: borrowing FileDescriptor, _ keepsReceipt: Bool) throws {
    if keepsReceipt { try queue.place.synchronize(QueueDirectory.sent, at: place) }
    try queue.place.synchronize(QueueDirectory.pending, at: place)
    let status = try place.status()
    if state.withLock(\.durable) != status {
      let now = realTime()
      try queue.place.synchronize(".", at: place)
      if status.modifiedSeconds < now.seconds - 1 { state.withLock { $0.durable = status } }
    }
    let handle = try queue.place.root.handle()
    try handle.synchronizedNames.synchronize(
      queue.place.directory.kind, in: handle.descriptor)
  }

  private func nextStamp(at place: borrowing FileDescriptor) throws -> UInt64 {
    let last = try state.withLock(\.last) ?? highestStamp(at: place)
    let stamp = max(queue.clock(), last &+ 1)
    state.withLock { $0.last = stamp }
    return stamp
  }

  // What is taken was pending before, so in this order nothing is missed; a consumer that is
  // replaced meanwhile gives its directory another name, and is looked for again.
  private func highestStamp(at place: borrowing FileDescriptor) throws(Errno) -> UInt64 {
    for _ in 0..<interruptionLimit {
      var batches = try queue.place.batches(QueueDirectory.pending, at: place) ?? []
      if let consumer = try queue.place.consumer(at: place) {
        let taken = QueueDirectory.taken + "/" + consumer
        guard let more = try queue.place.batches(taken, at: place) else { continue }
        batches += more
      }
      batches += try queue.place.batches(QueueDirectory.sent, at: place) ?? []
      let outcomes = try SharedContainer.entries(QueueDirectory.outcomes, at: place.rawValue) ?? []
      batches += outcomes.compactMap { OutcomeFile.id($0.name.text)?.batch }
      return batches.filter { $0.sender == sender }.map(\.order).max() ?? 0
    }
    throw .deviceBusy
  }

  // MARK: Limits

  // A look at all that waits allows a sixteenth of the limit at most until the next look, so the
  // cost of one send does not grow with what waits.
  private func admits(_ count: Int, _ size: Int) throws -> Bool {
    if state.withLock({ $0.entries >= count && $0.bytes >= size }) { return true }
    return try reporting("look at what waits in \"\(queue.name)\"", path: queue.path) {
      let place = try queue.place.openOrMake()
      let waiting = try queue.place.batches(QueueDirectory.pending, at: place) ?? []
      let entries = limits.entries - waiting.reduce(0) { $0 + $1.count }
      let bytes = limits.bytes - waiting.reduce(0) { $0 + $1.bytes }
      state.withLock { state in
        state.entries = min(entries, max(limits.entries / 16, count))
        state.bytes = min(bytes, max(limits.bytes / 16, size))
      }
      return entries >= count && bytes >= size
    }
  }

  private func unsupported(_ error: PropertyListError) -> AppGroupError {
    AppGroupError(
      error.code.isOfSize ? .tooLarge : .unsupportedValue, "send to \"\(queue.name)\"",
      path: queue.path,
      reason: "no consumer would accept it: \(error.reason)",
      remedy: "an entry is meant to be small; share large content as a file")
  }

  private func full() -> AppGroupError {
    AppGroupError(
      .queueFull, "send to \"\(queue.name)\"", path: queue.path,
      reason: "the limit of \(limits.entries) entries or \(limits.bytes) bytes is reached",
      remedy: "wait until its consumer has caught up")
  }
}
