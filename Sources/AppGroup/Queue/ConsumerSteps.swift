import PropertyLists
import SystemCalls

/// What a consumer does next, without ever waiting: what was left to it first, then what waits.
struct ConsumerSteps {
  private let queue: Queue
  /// The name of this consumer's directory in `taken/`.
  private let ownName: String
  /// What a test of the tests follows the directory by.
  private var followed: SharedDescriptor?
  /// What others had taken before, the next at the end.
  private var left: [BatchName]
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

  private var takenPath: String { QueueDirectory.taken + "/" + consumer }

  /// Makes this the queue's consumer, whoever was it before.
  init(_ queue: Queue) throws {
    self.queue = queue
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
    left = names.compactMap { BatchName($0) }.sorted(by: >)
    let batches = Set(left.map(\.text))
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
        try queue.place.attachmentIDs(batch, in: takenPath, at: place).compactMap { $0 })
    }
    try queue.place.sweepAttachments(takenBy: consumer, at: place) { needed.contains($0) }
  }

  /// The next entry to be delivered; nil when nothing waits.
  ///
  /// - Throws: `leaseLost` when this consumer was replaced.
  mutating func next() throws -> QueueEntry? {
    while true {
      if let entry = try nextOfCurrent() { return entry }
      guard try openNext() else { return nil }
    }
  }

  private mutating func nextOfCurrent() throws -> QueueEntry? {
    while let (batch, index) = current {
      guard index < batch.entries.count else { break }
      guard !batch.isSettled(index) else {
        current = (batch, index + 1)
        continue
      }
      let entry = batch.entries[index]
      if let payload = entry.payload, entry.expiry?.hasPassed != true {
        try takeAttachment(of: payload)
        current = (batch, index + 1)
        return QueueEntry(payload: payload, key: entry.key, batch, index)
      }
      try batch.settle(index, as: entry.payload == nil ? entry.withdrawal : .expired)
      current = (batch, index + 1)
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
    if let name = left.last {
      try open(name, isRedelivery: true, at: place)
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
    left.append(name)
    try open(name, isRedelivery: false, at: place)
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
    _ name: BatchName, isRedelivery: Bool, at place: borrowing FileDescriptor
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
      let settled = isRedelivery ? try self.settled(name, path, at: place) : []
      guard settled.count < batch.entries.count else {
        // Its consumer died when all was settled but the last step.
        try queue.place.discard(path, at: place)
        try queue.place.discard(path + QueueDirectory.doneSuffix, at: place)
        return
      }
      let taken = TakenBatch(
        name, batch, settled: settled, isRedelivery: isRedelivery, in: queue, by: consumer)
      current = (taken, 0)
    } catch let error as Batch.Unreadable {
      try putAside(name, path, error.reason, at: place)
    }
  }

  // An entry with a note has ended, also if its consumer died before it could settle it.
  private func settled(
    _ name: BatchName, _ path: String, at place: borrowing FileDescriptor
  ) throws -> Set<Int> {
    var settled = try queue.place.settled(path, at: place)
    for index in 0..<name.count
    where try queue.place.hasOutcome(.init(batch: name, index: index), at: place) {
      settled.insert(index)
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
      try queue.place.discard(path + QueueDirectory.doneSuffix, at: place)
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
      try queue.place.discard(path + QueueDirectory.doneSuffix, at: place)
    } catch let error as Errno where error == .noSuchFile {
      throw queue.replaced()
    }
  }
}
