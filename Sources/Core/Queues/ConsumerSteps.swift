import Containers
import Entries
import PropertyLists
import SystemCalls

/// The steps of a consumer, none of which waits: first what was left to it, then what waits.
struct ConsumerSteps {
  private let queue: Queue
  /// The name of this consumer's directory in `taken/`.
  private let ownName: String
  #if DEBUG
    /// The directory itself, while `LeaseFault` has this consumer follow it to its successor.
    private var followed: SharedDescriptor?
  #endif
  private let terms: DeliveryTerms
  /// Batches that others had taken before, with the next at the end; and those that this consumer
  /// took and could not open.
  private var left: [(name: EntryFile, isTakenBefore: Bool)]
  /// Whether the entry that was delivered last had been given back before.
  private var wasReleased = false
  /// Waiting batches as of the last scan, with the next at the end. The next scan comes when all of
  /// them are taken, so the cost of an entry does not grow with the number of waiting entries.
  private var waiting: [EntryFile] = []
  private var current: (batch: TakenBatch, next: Int)?

  private var consumer: String {
    #if DEBUG
      if let followed {
        do throws(Errno) {
          let target = try linkTarget("/proc/self/fd/\(followed.descriptor.rawValue)")
          return String(target.split(separator: "/").last ?? "")
        } catch {
          // Without /proc it is not followed.
          return ownName
        }
      }
    #endif
    return ownName
  }

  /// This consumer's directory, relative to the queue's.
  var takenPath: String { QueueDirectory.taken + "/" + consumer }

  /// Makes this the queue's consumer, whatever consumer there was before.
  init(_ queue: Queue, _ terms: DeliveryTerms) throws {
    self.queue = queue
    self.terms = terms
    ownName = "consumer-" + Nonce.next()
    left = []
    for _ in 0..<renameRaceLimit {
      let place = try queue.place.openOrMake()
      try queue.place.makeParts(at: place)
      guard let other = try queue.place.consumer(at: place) else {
        // Somebody removed it: an empty directory makes way for a complete one.
        try queue.place.removeEmptyTaken(at: place)
        continue
      }
      let others = QueueDirectory.taken + "/" + other
      guard
        try ifPresent(rename(others, at: place.rawValue, to: takenPath, at: place.rawValue)) != nil
      else { continue }
      #if DEBUG
        if LeaseFault.consumingThroughOldDescriptor.isActive {
          followed = SharedDescriptor(
            try FileDescriptor.openBeneath(takenPath, at: place.rawValue, [.pathOnly, .directory]))
        }
      #endif
      // From here on nobody else changes anything in it, so the listing is a snapshot.
      try tidy(place)
      try queue.place.sweep(at: place)
      try queue.place.sweepAttachments(at: place)
      return
    }
    throw Errno.deviceBusy
  }

  private mutating func tidy(_ place: borrowing FileDescriptor) throws {
    let names = try SharedContainer.entries(takenPath, at: place.rawValue)?.map(\.name.text) ?? []
    left = names.compactMap { EntryFile($0) }.sorted(by: >).map { ($0, true) }
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

  /// When the first entry that was given back is due; nil if there is none.
  var due: ContinuousClock.Instant? { terms.released.due }

  /// Returns the next entry to deliver; nil if nothing waits. Returned entries that are due come
  /// before waiting ones, but not twice in a row as long as something waits.
  ///
  /// - Throws: `leaseLost` if this consumer was replaced.
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
      // Ended in the meantime by the consumer that had it first.
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

  /// - Returns: nil if it has ended instead.
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

  /// - Returns: false if there is no batch.
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
      // It was cancelled, or this consumer was replaced.
      try confirm(at: place)
      waiting.removeLast()
      return true
    }
    waiting.removeLast()
    // If reading it fails now, for example for lack of descriptors, it is still the next.
    left.append((name, false))
    try open(name, isTakenBefore: false, at: place)
    left.removeLast()
    return true
  }

  private mutating func nextWaiting(at place: borrowing FileDescriptor) throws -> EntryFile? {
    if let name = waiting.last { return name }
    // A replaced consumer must not wait forever.
    try confirm(at: place)
    waiting = try EntryFile.ordered {
      try queue.place.batches(QueueDirectory.pending, at: place) ?? []
    }.reversed()
    return waiting.last
  }

  private func confirm(at place: borrowing FileDescriptor) throws {
    guard try queue.place.exists(takenPath, at: place) else { throw queue.replaced() }
  }

  private mutating func open(
    _ name: EntryFile, isTakenBefore: Bool, at place: borrowing FileDescriptor
  ) throws {
    let path = takenPath + "/" + name.text
    do {
      guard let bytes = try queue.place.read(path, at: place) else {
        // Somebody removed it, or the whole queue.
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
        // Its consumer died when everything was settled except for the last step.
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

  // An entry with a note, or one that is kept, has ended, even if its consumer died before settling
  // it.
  private func settled(
    _ name: EntryFile, _ path: String, _ batch: Batch? = nil, at place: borrowing FileDescriptor
  ) throws -> Set<Int> {
    var settled = try queue.place.settled(path, at: place)
    let hasKept = try queue.place.exists(QueueDirectory.failed, at: place)
    for index in 0..<name.count {
      let id = QueueEntryID(batch: name, index: index)
      if hasKept, let entry = batch?.entries[index],
        let failure = try queue.place.failure(id, at: place)
      {
        // The step that its consumer did not reach.
        try queue.place.keep(entry, id, failure.reason, of: consumer, at: place)
        try queue.place.note(
          .failed(reason: failure.reason), of: id, from: consumer, at: place)
      }
      if try queue.place.hasOutcome(id, at: place) { settled.insert(index) }
    }
    return settled.intersection(0..<name.count)
  }

  // The power failed before it was on the disk, which its sender had not been promised: so it does
  // not exist. Only a sender that keeps a receipt may still ask for it.
  private func drop(
    _ name: EntryFile, _ path: String, at place: borrowing FileDescriptor
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

  // The notes first: its sender then learns of it, whatever happens next.
  private func putAside(
    _ name: EntryFile, _ path: String, _ reason: String, at place: borrowing FileDescriptor
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
