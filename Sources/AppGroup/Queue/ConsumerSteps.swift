import PropertyLists
import SystemCalls

/// What a consumer does next, without ever waiting: what was left to it first, then what waits.
struct ConsumerSteps {
  private let queue: Queue
  /// The name of this consumer's directory in `taken/`.
  private let ownName: String
  /// What a test of the tests follows the directory by.
  private var followed: SharedDescriptor?
  private let terms: DeliveryTerms
  /// What others had taken before, the next at the end; and what this one took and could not open.
  private var left: [(name: BatchName, isTakenBefore: Bool)]
  /// Whether the entry that was delivered last had been given back.
  private var wasReleased = false
  private var waiting = PendingOrder()
  private var current: (batch: TakenBatch, next: Int)?

  private var consumer: String {
    guard let followed else { return ownName }
    do throws(Errno) {
      let target = try linkTarget("/proc/self/fd/\(followed.descriptor.rawValue)")
      return String(target.split(separator: "/").last ?? "")
    } catch {
      // Without /proc it is not followed.
      return ownName
    }
  }

  /// This consumer's directory, seen from the queue's.
  var takenPath: String { QueueDirectory.taken + "/" + consumer }

  /// Makes this the queue's consumer, whoever was it before.
  init(_ queue: Queue, _ terms: DeliveryTerms) throws {
    self.queue = queue
    self.terms = terms
    ownName = "consumer-" + Nonce.next()
    left = []
    for _ in 0..<interruptionLimit {
      let place = try queue.place.openOrMake()
      try queue.place.makeParts(at: place)
      guard let other = try queue.place.consumer(at: place) else {
        // Somebody removed it: what is empty makes way for a whole one.
        try queue.place.removeEmptyTaken(at: place)
        continue
      }
      do throws(Errno) {
        try rename(
          QueueDirectory.taken + "/" + other, at: place.rawValue, to: takenPath,
          at: place.rawValue)
      } catch {
        guard error == .noSuchFile else { throw error }
        continue
      }
      if queue.container.fault == .consumingThroughOldDescriptor {
        followed = SharedDescriptor(
          try FileDescriptor.openBeneath(takenPath, at: place.rawValue, [.pathOnly, .directory]))
      }
      // From here on nobody else changes anything in it, so the listing is one.
      try tidy(place)
      try queue.place.sweep(at: place)
      try queue.place.sweepAttachments(at: place)
      return
    }
    throw Errno.deviceBusy
  }

  private mutating func tidy(_ place: borrowing FileDescriptor) throws {
    let names = try SharedContainer.entries(takenPath, at: place.rawValue)?.map(\.name.text) ?? []
    left = names.compactMap { BatchName($0) }.sorted(by: >).map { ($0, true) }
    let batches = Set(left.map(\.name.text))
    for name in names {
      if name.hasPrefix(AttachmentPlace.makingPrefix) {
        try queue.place.removeAttachmentDirectory(takenPath + "/" + name, at: place)
        continue
      }
      let isOrphan = QueueDirectory.batch(besideWhich: name).map { !batches.contains($0) } ?? false
      guard isOrphan || name.hasPrefix(QueueDirectory.passingPrefix) else { continue }
      try queue.place.discard(takenPath + "/" + name, at: place)
    }
    guard names.contains(where: { $0.hasPrefix(AttachmentPlace.takenPrefix) }) else { return }
    let needed = try left.reduce(into: Set<String>()) { needed, batch in
      needed.formUnion(
        try queue.place.attachmentIDs(batch.name, in: takenPath, at: place).compactMap { $0 })
    }
    try queue.place.sweepAttachments(takenBy: consumer, at: place) { needed.contains($0) }
  }

  /// When something that was given back is to be delivered; nil when nothing was.
  var due: ContinuousClock.Instant? { terms.released.due }

  /// The next entry to be delivered; nil when nothing waits. What was given back and is due comes before
  /// what waits, but not twice in a row as long as something waits.
  ///
  /// - Throws: `leaseLost` when this consumer was replaced.
  mutating func next() throws -> QueueEntry? {
    if !wasReleased, let entry = try nextReleased() { return entry }
    while true {
      if let entry = try nextOfCurrent() {
        wasReleased = false
        return entry
      }
      guard try openNext() else { return try nextReleased() }
    }
  }

  private mutating func nextReleased() throws -> QueueEntry? {
    while let released = terms.released.takeDue() {
      // Ended meanwhile, by the consumer that had it first.
      guard !released.batch.isSettled(released.index) else { continue }
      do {
        guard let entry = try deliver(released.batch, released.index) else { continue }
        wasReleased = true
        return entry
      } catch {
        terms.released.add(released)
        throw error
      }
    }
    return nil
  }

  /// - Returns: nil when it has ended instead.
  private func deliver(_ batch: TakenBatch, _ index: Int) throws -> QueueEntry? {
    let entry = batch.entries[index]
    guard let payload = entry.payload, entry.expiry?.hasPassed != true else {
      try batch.settle(index, as: entry.payload == nil ? entry.withdrawal : .expired)
      return nil
    }
    try takeAttachment(of: payload)
    guard let deliveries = try batch.deliver(index) else { return nil }
    return QueueEntry(payload: payload, key: entry.key, deliveries: deliveries, batch, index)
  }

  private mutating func nextOfCurrent() throws -> QueueEntry? {
    while let (batch, index) = current {
      guard index < batch.entries.count else { break }
      guard !batch.isSettled(index) else {
        current = (batch, index + 1)
        continue
      }
      if let due = batch.due(index) {
        terms.released.add(.init(batch: batch, index: index, due: due))
        current = (batch, index + 1)
        continue
      }
      let entry = try deliver(batch, index)
      current = (batch, index + 1)
      if let entry { return entry }
    }
    current = nil
    return nil
  }

  private func takeAttachment(of payload: PropertyListValue) throws {
    guard let id = payload.attachmentID else { return }
    try queue.place.takeAttachment(id, by: consumer, at: queue.openForConsumer())
  }

  /// - Returns: false when there is no batch.
  private mutating func openNext() throws -> Bool {
    let place = try queue.openForConsumer()
    if let (name, isTakenBefore) = left.last {
      try open(name, isTakenBefore: isTakenBefore, at: place)
      left.removeLast()
      return true
    }
    guard let name = try nextWaiting(at: place) else { return false }
    do throws(Errno) {
      try rename(
        QueueDirectory.pendingPath(name), at: place.rawValue, to: takenPath + "/" + name.text,
        at: place.rawValue)
    } catch {
      guard error == .noSuchFile else { throw error }
      // It was cancelled, or we were replaced.
      try confirm(at: place)
      waiting.removeNext()
      return true
    }
    waiting.removeNext()
    // Should reading it fail now, for want of descriptors for example, it is the next all the same.
    left.append((name, false))
    try open(name, isTakenBefore: false, at: place)
    left.removeLast()
    return true
  }

  private mutating func nextWaiting(at place: borrowing FileDescriptor) throws -> BatchName? {
    if let name = waiting.next { return name }
    // Whoever was replaced is not to wait for ever.
    try confirm(at: place)
    let queue = queue
    try waiting.look { try queue.place.batches(QueueDirectory.pending, at: place) ?? [] }
    return waiting.next
  }

  /// Whether all that this consumer took is settled.
  ///
  /// - Throws: `leaseLost` when it was replaced.
  func hasNothingTaken(at place: borrowing FileDescriptor) throws -> Bool {
    guard let taken = try queue.place.batches(takenPath, at: place) else { throw queue.replaced() }
    return taken.isEmpty
  }

  private func confirm(at place: borrowing FileDescriptor) throws {
    guard try queue.place.exists(takenPath, at: place) else { throw queue.replaced() }
  }

  private mutating func open(
    _ name: BatchName, isTakenBefore: Bool, at place: borrowing FileDescriptor
  ) throws {
    let path = takenPath + "/" + name.text
    do {
      guard let bytes = try queue.place.read(path, at: place) else {
        // Somebody removed it, or all of it.
        return try confirm(at: place)
      }
      let batch: Batch
      do throws(Batch.Unreadable) {
        batch = try Batch(bytes: bytes, count: name.count)
      } catch {
        guard Batch.isIncomplete(bytes, of: name.bytes) else { throw error }
        return try drop(name, path, at: place)
      }
      let settled = isTakenBefore ? try self.settled(name, path, batch, at: place) : []
      guard settled.count < batch.entries.count else {
        // Its consumer died when all was settled but the last step.
        try queue.place.discard(path, at: place)
        try discardNotes(path, at: place)
        return
      }
      let log =
        isTakenBefore
        ? DeliveryLog(
          try queue.place.readNote(path + QueueDirectory.deliveriesSuffix, at: place),
          isTaken: name.count == 1) : DeliveryLog()
      let taken = TakenBatch(name, batch, settled: settled, log, in: queue, by: consumer, terms)
      current = (taken, 0)
    } catch let error as Batch.Unreadable {
      try putAside(name, path, error.reason, at: place)
    }
  }

  private func discardNotes(_ path: String, at place: borrowing FileDescriptor) throws(Errno) {
    try queue.place.discard(path + QueueDirectory.doneSuffix, at: place)
    try queue.place.discard(path + QueueDirectory.deliveriesSuffix, at: place)
  }

  // An entry with a note, or that is kept, has ended, also if its consumer died before it could settle it.
  private func settled(
    _ name: BatchName, _ path: String, _ batch: Batch? = nil, at place: borrowing FileDescriptor
  ) throws -> Set<Int> {
    var settled = try queue.place.settled(path, at: place)
    let hasKept = try queue.place.exists(QueueDirectory.failed, at: place)
    for index in 0..<name.count {
      let id = QueueEntryID(batch: name, index: index)
      if hasKept, let entry = batch?.entries[index],
        let failure = try queue.place.failure(id, at: place)
      {
        // What its consumer did not come to.
        try queue.place.keep(entry, id, failure.reason, of: consumer, at: place)
        try queue.place.note(
          .failed(reason: failure.reason), of: id, from: consumer, at: place)
      }
      if try queue.place.hasOutcome(id, at: place) { settled.insert(index) }
    }
    return settled.intersection(0..<name.count)
  }

  // The power failed before it was on the disk, which was not promised to its sender: so it is not
  // there. Only a sender that keeps a receipt may still ask for it.
  private func drop(
    _ name: BatchName, _ path: String, at place: borrowing FileDescriptor
  ) throws {
    do {
      if try queue.place.exists(QueueDirectory.sentPath(name), at: place) {
        for index in try Set(0..<name.count).subtracting(settled(name, path, at: place)).sorted() {
          try queue.place.note(
            .failed(reason: "the power failed before it was on the disk"),
            of: .init(batch: name, index: index), from: consumer, at: place)
        }
      }
      try removeFile(path, at: place.rawValue)
      try discardNotes(path, at: place)
    } catch let error as Errno where error == .noSuchFile {
      throw queue.replaced()
    }
  }

  // The notes first: then its sender learns it, whatever happens now.
  private func putAside(
    _ name: BatchName, _ path: String, _ reason: String, at place: borrowing FileDescriptor
  ) throws {
    do {
      for index in try Set(0..<name.count).subtracting(settled(name, path, at: place)).sorted() {
        try queue.place.note(
          .failed(reason: "it could not be read: \(reason)"),
          of: .init(batch: name, index: index), from: consumer, at: place)
      }
      let taken = try FileDescriptor.openBeneath(
        takenPath, at: place.rawValue, [.pathOnly, .directory])
      try Quarantine.take(FileName(name.text), at: taken.rawValue, root: queue.place.root)
      try discardNotes(path, at: place)
    } catch let error as Errno where error == .noSuchFile {
      throw queue.replaced()
    }
  }
}
