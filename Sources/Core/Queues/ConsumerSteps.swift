import Containers
import Entries
import PropertyLists
import SystemCalls

/// The steps of a consumer, none of which waits: first what was left to it, then what waits.
struct ConsumerSteps {
  private let queue: Queue
  /// The name of the directory in `taken/` that this consumer takes into.
  private let ownName: String
  private var others: OtherConsumers
  /// How many further directories it has taken over: each has a number after `ownName`.
  private var takeovers = 0
  #if DEBUG
    /// The directory itself, while `LeaseFault` has this consumer follow it to its successor.
    private var followed: SharedDescriptor?
  #endif
  private let terms: DeliveryTerms
  /// Batches that others had taken before, with the next at the end; and those that this consumer
  /// took and could not open.
  private var left: [(directory: String, name: EntryFile, isTakenBefore: Bool)]
  /// Whether the entry that was delivered last had been given back before.
  private var wasReleased = false
  private var waiting: WaitingEntries
  private var current: (batch: TakenBatch, next: Int)?
  /// What other workers have, and this one waits for, because it keeps the order of senders.
  private(set) var obstacles: Set<EntryFile> = []

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

  /// Begins to consume: takes over what others have left that are gone.
  ///
  /// - Parameters:
  ///   - name: the name of its directory, which was never used.
  ///   - others: those that may consume beside it.
  init(_ terms: DeliveryTerms, named name: String, beside others: OtherConsumers) throws {
    queue = terms.directory.queue
    self.terms = terms
    self.others = others
    ownName = name
    left = []
    waiting = WaitingEntries(of: queue, terms.arrivals)
    for _ in 0..<renameRaceLimit {
      let place = try queue.openOrMake()
      try place.makeParts()
      guard try begin(at: place) else { continue }
      #if DEBUG
        if LeaseFault.consumingThroughOldDescriptor.isActive {
          followed = SharedDescriptor(try place.openFile(takenPath, [.pathOnly, .directory]))
        }
      #endif
      // From here on nobody else changes anything in it, so the listing is a snapshot.
      try tidy(ownName, at: place)
      try place.sweep()
      try place.sweepAttachments()
      return
    }
    throw Errno.deviceBusy
  }

  /// - Returns: false if other processes were faster.
  private mutating func begin(at place: QueueDirectory) throws -> Bool {
    others.noteChange()
    let abandoned = try others.abandoned(at: place, own: ownName)
    if let first = abandoned.first {
      // The rest is taken over with the first look.
      if abandoned.count > 1 { others.noteChange() }
      let path = QueueDirectory.taken + "/" + first
      return try ifPresent(place.move(path, to: takenPath)) != nil
    }
    guard try place.consumers().isEmpty else {
      // All that is there belongs to workers.
      return try ifPresent(place.makeDirectory(takenPath)) != nil
    }
    // Somebody removed it: an empty directory makes way for a complete one.
    try place.removeEmptyTaken()
    return false
  }

  /// Takes over what workers have left that died, or have been stopped for a grace.
  private mutating func takeOver(at place: QueueDirectory) throws {
    for other in try others.abandoned(at: place, own: consumer) {
      let directory = "\(consumer).\(takeovers)"
      let path = QueueDirectory.taken + "/" + directory
      guard try ifPresent(place.move(QueueDirectory.taken + "/" + other, to: path)) != nil else {
        continue
      }
      takeovers += 1
      try tidy(directory, at: place)
      do throws(Errno) {
        try place.removeEmpty(path)
      } catch {
        // Something is in it, which ends with the entries.
        guard error == .directoryNotEmpty || error == .alreadyExists else { throw error }
      }
    }
  }

  private mutating func tidy(_ directory: String, at place: QueueDirectory) throws {
    let path = QueueDirectory.taken + "/" + directory
    let names = try place.list(path)?.map(\.name.text) ?? []
    let batches = names.compactMap { EntryFile($0) }
    left += batches.map { (directory, $0, true) }
    sortLeft()
    let batchNames = Set(batches.map(\.text))
    for name in names {
      if name.hasPrefix(AttachmentPlace.makingPrefix) {
        try place.removeAttachmentDirectory(path + "/" + name)
        continue
      }
      let isOrphan =
        QueueDirectory.batch(besideWhich: name).map { !batchNames.contains($0) } ?? false
      guard isOrphan || name.hasPrefix(QueueDirectory.passingPrefix) else { continue }
      try place.discard(path + "/" + name)
    }
    guard names.contains(where: { $0.hasPrefix(AttachmentPlace.takenPrefix) }) else { return }
    let needed = try batches.reduce(into: Set<String>()) { needed, batch in
      needed.formUnion(try place.attachmentIDs(batch, in: path).compactMap { $0 })
    }
    try place.sweepAttachments(takenBy: directory) { needed.contains($0) }
  }

  private mutating func sortLeft() { left.sort { $1.name.precedes($0.name) } }

  var keepsOrder: Bool { terms.keepsOrder }

  /// Receives what the watch of `pending/` reports.
  var arrivals: Arrivals { terms.arrivals }

  /// The queue's directory, for as long as this consumer works.
  var directory: OpenQueue { terms.directory }

  /// Another consumer came, left or died.
  mutating func noteChange() { others.noteChange() }

  /// When something may be to deliver without an event: an entry that was given back or delayed is
  /// due, or another consumer may be stopped; nil if neither can be.
  var due: ContinuousClock.Instant? {
    [terms.released.due, others.due, waiting.due].compactMap(\.self).min()
  }

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
    try takeAttachment(of: payload, by: batch.consumer)
    guard let deliveries = try batch.deliver(index) else { return nil }
    let isAgain = deliveries > 1
    Diagnostics.note(
      isAgain ? .redelivery : .delivery, isAgain ? .info : nil,
      "an entry of \"\(queue.name)\" is delivered for the \(deliveries). time",
      in: queue.container.root.path,
      fields: [
        "queue": queue.name, "entry": "\(QueueEntryID(batch: batch.name, index: index))",
        "deliveries": "\(deliveries)",
      ])
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

  private func takeAttachment(of payload: PropertyListValue, by directory: String) throws {
    guard let id = payload.attachmentID else { return }
    try self.directory.openForConsumer().takeAttachment(id, by: directory)
  }

  /// - Returns: false if there is no batch.
  private mutating func openNext() throws -> Bool {
    let place = try directory.openForConsumer()
    try takeOver(at: place)
    var turns = try turns(at: place)
    defer { obstacles = turns.obstacles }
    if let index = left.indices.last(where: { turns.mayDeliver(left[$0].name) }) {
      let next = left[index]
      let path = QueueDirectory.taken + "/" + next.directory + "/" + next.name.text
      try open(next.name, path, in: next.directory, isTakenBefore: next.isTakenBefore, at: place)
      left.remove(at: index)
      return true
    }
    guard let name = try waiting.next(at: place, { turns.mayTake($0) }) else {
      // A replaced consumer must not wait forever.
      try confirm(at: place)
      return false
    }
    let file = name.text
    let path = takenPath + "/" + file
    if try ifPresent(place.move(QueueDirectory.pending + "/" + file, to: path)) == nil {
      // It was cancelled, another worker has it, or this consumer was replaced.
      try confirm(at: place)
      waiting.remove(name)
      return true
    }
    waiting.remove(name)
    // If reading it fails now, for example for lack of descriptors, it is still the next.
    left.append((consumer, name, false))
    guard !terms.keepsOrder else {
      sortLeft()
      return true
    }
    try open(name, path, in: consumer, isTakenBefore: false, at: place)
    left.removeLast()
    return true
  }

  private func turns(at place: QueueDirectory) throws -> SenderTurns {
    SenderTurns(taken: terms.keepsOrder ? try others.taken(at: place, own: consumer) : [])
  }

  private func confirm(at place: QueueDirectory) throws {
    guard try place.exists(takenPath) else { throw queue.replaced() }
  }

  private mutating func open(
    _ name: EntryFile, _ path: String, in directory: String, isTakenBefore: Bool,
    at place: QueueDirectory
  ) throws {
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
        return try drop(name, in: directory, at: place)
      }
      let settled =
        isTakenBefore ? try self.settled(name, in: directory, batch, at: place) : []
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
      let taken = TakenBatch(
        name, batch, settled: settled, log, by: directory, at: path, terms)
      current = (taken, 0)
    } catch let error as Batch.Unreadable {
      try putAside(name, in: directory, error.reason, at: place)
    }
  }

  // An entry with a note, or one that is kept, has ended, even if its consumer died before settling
  // it.
  private func settled(
    _ name: EntryFile, in directory: String, _ batch: Batch? = nil, at place: QueueDirectory
  ) throws -> Set<Int> {
    var settled = try place.settled(QueueDirectory.taken + "/" + directory + "/" + name.text)
    let hasKept = try place.exists(QueueDirectory.failed)
    for index in 0..<name.count {
      let id = QueueEntryID(batch: name, index: index)
      if hasKept, let entry = batch?.entries[index],
        let failure = try place.failure(id)
      {
        // The step that its consumer did not reach.
        try place.keep(entry, id, failure.reason, of: directory)
        try place.note(.failed(reason: failure.reason), of: id, from: directory)
      }
      if try place.hasOutcome(id) { settled.insert(index) }
    }
    return settled.intersection(0..<name.count)
  }

  // The power failed before it was on the disk, which its sender had not been promised: so it does
  // not exist. Only a sender that keeps a receipt may still ask for it.
  private func drop(
    _ name: EntryFile, in directory: String, at place: QueueDirectory
  ) throws {
    let path = QueueDirectory.taken + "/" + directory + "/" + name.text
    do {
      if try place.exists(QueueDirectory.sentPath(name)) {
        try fail(name, in: directory, "the power failed before it was on the disk", at: place)
      }
      try place.remove(path)
      try place.discardNotes(beside: path)
    } catch let error as Errno where error == .noSuchFile {
      throw queue.replaced()
    }
  }

  /// Notes the failure of every entry that has not ended.
  private func fail(
    _ name: EntryFile, in directory: String, _ reason: String, at place: QueueDirectory
  ) throws {
    let settled = try settled(name, in: directory, at: place)
    for index in Set(0..<name.count).subtracting(settled).sorted() {
      let id = QueueEntryID(batch: name, index: index)
      try place.note(.failed(reason: reason), of: id, from: directory)
    }
  }

  // The notes first: its sender then learns of it, whatever happens next.
  private func putAside(
    _ name: EntryFile, in directory: String, _ reason: String, at place: QueueDirectory
  ) throws {
    let path = QueueDirectory.taken + "/" + directory
    do {
      try fail(name, in: directory, "it could not be read: \(reason)", at: place)
      let taken = try place.openFile(path, [.pathOnly, .directory])
      try Quarantine.take(FileName(name.text), at: taken.rawValue, root: queue.directory.root)
      try place.discardNotes(beside: path + "/" + name.text)
    } catch let error as Errno where error == .noSuchFile {
      throw queue.replaced()
    }
  }
}
