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
      let place = try queue.openOrMake()
      try place.makeParts()
      guard let other = try place.consumer() else {
        // Somebody removed it: an empty directory makes way for a complete one.
        try place.removeEmptyTaken()
        continue
      }
      let others = QueueDirectory.taken + "/" + other
      guard
        try ifPresent(place.move(others, to: takenPath)) != nil
      else { continue }
      #if DEBUG
        if LeaseFault.consumingThroughOldDescriptor.isActive {
          followed = SharedDescriptor(try place.openFile(takenPath, [.pathOnly, .directory]))
        }
      #endif
      // From here on nobody else changes anything in it, so the listing is a snapshot.
      try tidy(place)
      try place.sweep()
      try place.sweepAttachments()
      return
    }
    throw Errno.deviceBusy
  }

  private mutating func tidy(_ place: QueueDirectory) throws {
    let names = try place.list(takenPath)?.map(\.name.text) ?? []
    left = names.compactMap { EntryFile($0) }.sorted(by: >).map { ($0, true) }
    let batches = Set(left.map(\.name.text))
    for name in names {
      if name.hasPrefix(AttachmentPlace.makingPrefix) {
        try place.removeAttachmentDirectory(takenPath + "/" + name)
        continue
      }
      let isOrphan = QueueDirectory.batch(besideWhich: name).map { !batches.contains($0) } ?? false
      guard isOrphan || name.hasPrefix(QueueDirectory.passingPrefix) else { continue }
      try place.discard(takenPath + "/" + name)
    }
    guard names.contains(where: { $0.hasPrefix(AttachmentPlace.takenPrefix) }) else { return }
    let needed = try left.reduce(into: Set<String>()) { needed, batch in
      needed.formUnion(try place.attachmentIDs(batch.name, in: takenPath).compactMap { $0 })
    }
    try place.sweepAttachments(takenBy: consumer) { needed.contains($0) }
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
    try queue.openForConsumer().takeAttachment(id, by: consumer)
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
    let taken = takenPath + "/" + name.text
    if try ifPresent(place.move(QueueDirectory.pendingPath(name), to: taken)) == nil {
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

  private mutating func nextWaiting(at place: QueueDirectory) throws -> EntryFile? {
    if let name = waiting.last { return name }
    // A replaced consumer must not wait forever.
    try confirm(at: place)
    waiting = try EntryFile.ordered {
      try place.batches(QueueDirectory.pending) ?? []
    }.reversed()
    return waiting.last
  }

  private func confirm(at place: QueueDirectory) throws {
    guard try place.exists(takenPath) else { throw queue.replaced() }
  }

  private mutating func open(
    _ name: EntryFile, isTakenBefore: Bool, at place: QueueDirectory
  ) throws {
    let path = takenPath + "/" + name.text
    do {
      guard let bytes = try place.read(path) else {
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
        try place.discard(path)
        return try place.discardNotes(beside: path)
      }
      let log =
        isTakenBefore
        ? DeliveryLog(
          try place.readNote(path + QueueDirectory.deliveriesSuffix),
          isTaken: name.count == 1) : DeliveryLog()
      let taken = TakenBatch(name, batch, settled: settled, log, in: queue, by: consumer, terms)
      current = (taken, 0)
    } catch let error as Batch.Unreadable {
      try putAside(name, path, error.reason, at: place)
    }
  }

  // An entry with a note, or one that is kept, has ended, even if its consumer died before settling
  // it.
  private func settled(
    _ name: EntryFile, _ path: String, _ batch: Batch? = nil, at place: QueueDirectory
  ) throws -> Set<Int> {
    var settled = try place.settled(path)
    let hasKept = try place.exists(QueueDirectory.failed)
    for index in 0..<name.count {
      let id = QueueEntryID(batch: name, index: index)
      if hasKept, let entry = batch?.entries[index],
        let failure = try place.failure(id)
      {
        // The step that its consumer did not reach.
        try place.keep(entry, id, failure.reason, of: consumer)
        try place.note(.failed(reason: failure.reason), of: id, from: consumer)
      }
      if try place.hasOutcome(id) { settled.insert(index) }
    }
    return settled.intersection(0..<name.count)
  }

  // The power failed before it was on the disk, which its sender had not been promised: so it does
  // not exist. Only a sender that keeps a receipt may still ask for it.
  private func drop(_ name: EntryFile, _ path: String, at place: QueueDirectory) throws {
    do {
      if try place.exists(QueueDirectory.sentPath(name)) {
        try fail(name, path, "the power failed before it was on the disk", at: place)
      }
      try place.remove(path)
      try place.discardNotes(beside: path)
    } catch let error as Errno where error == .noSuchFile {
      throw queue.replaced()
    }
  }

  /// Notes the failure of every entry that has not ended.
  private func fail(
    _ name: EntryFile, _ path: String, _ reason: String, at place: QueueDirectory
  ) throws {
    for index in try Set(0..<name.count).subtracting(settled(name, path, at: place)).sorted() {
      let id = QueueEntryID(batch: name, index: index)
      try place.note(.failed(reason: reason), of: id, from: consumer)
    }
  }

  // The notes first: its sender then learns of it, whatever happens next.
  private func putAside(
    _ name: EntryFile, _ path: String, _ reason: String, at place: QueueDirectory
  ) throws {
    do {
      try fail(name, path, "it could not be read: \(reason)", at: place)
      let taken = try place.openFile(takenPath, [.pathOnly, .directory])
      try Quarantine.take(FileName(name.text), at: taken.rawValue, root: queue.directory.root)
      try place.discardNotes(beside: path)
    } catch let error as Errno where error == .noSuchFile {
      throw queue.replaced()
    }
  }
}
