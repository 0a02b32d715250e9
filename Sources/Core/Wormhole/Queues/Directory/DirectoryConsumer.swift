import WormholePropertyLists
import WormholeSystem

/// A consumer's place in `taken/`, and how batches get there: first those of consumers that are gone,
/// then waiting ones.
struct DirectoryConsumer: ConsumerSource {
  private struct TakenFile {
    /// The name of the consumer's directory.
    let directory: String
    let name: EntryFile
    let isTakenBefore: Bool
    /// Whether it is to be shared with other workers.
    var isToShare = false
    /// The name as text, which takes a while to compose.
    let text: String
    let path: String

    init(directory: String, name: EntryFile, isTakenBefore: Bool = false) {
      (self.directory, self.name, self.isTakenBefore) = (directory, name, isTakenBefore)
      text = name.text
      path = QueueDirectory.takenPath(directory, text)
    }
  }

  private let queue: PlainQueue
  /// The name of the directory in `taken/` that this consumer takes into.
  private let ownName: String
  private let names = TakenNames()
  private let ring: ConsumerRing
  /// What other consumers have left.
  private let free = FreeDirectories()
  private var others: OtherConsumers
  /// How many further directories it has taken over: each has a number after `ownName`.
  private var takeovers = 0
  /// The directories that it has taken over and not looked into yet.
  private var untidied: [String] = []
  #if DEBUG
    /// The directory itself, while `LeaseFault` has this consumer follow it to its successor.
    private var followed: SharedDescriptor?
  #endif
  private let terms: DeliveryTerms
  /// Receives what the watch of `pending/` reports.
  private let arrivals = Arrivals()
  /// Batches that others had taken before, with the next at the end; and batches that this consumer
  /// took and could not open.
  private var left: [TakenFile] = []
  private var waiting: WaitingEntries

  private var consumer: String {
    #if DEBUG
      if let path = followed.map({ "/proc/self/fd/\($0.descriptor.rawValue)" }),
        // Without /proc it is not followed.
        let target = try? linkTarget(path)
      {
        return String(target.split(separator: "/").last ?? "")
      }
    #endif
    return ownName
  }

  /// This consumer's directory, relative to the queue's.
  var takenPath: String { QueueDirectory.takenPath(consumer) }

  /// The pause before a consumer that has not waited for an entry begins to look at others.
  private static let pause: Duration = .seconds(1)

  /// Begins to consume: takes over the batches of consumers that are gone.
  init(_ terms: DeliveryTerms, as role: ConsumerRole) throws {
    queue = terms.queue
    self.terms = terms
    // A worker's registration is not the role.
    others = OtherConsumers(of: queue, role: role.registration?.id)
    ownName = role.name
    ring = ConsumerRing(terms.directory, role.name, names, others)
    waiting = WaitingEntries(clock: queue.clock, arrivals)
    for _ in 0..<renameRaceLimit {
      let place = try queue.openOrMake()
      try place.makeParts()
      guard try isWorker ? beginBesideOthers(at: place) : begin(at: place) else { continue }
      #if DEBUG
        if LeaseFault.consumingThroughOldDescriptor.isActive {
          followed = SharedDescriptor(try place.openFile(takenPath, [.pathOnly, .directory]))
        }
      #endif
      // From here on no other process changes anything in it, so the listing is a snapshot.
      try tidy(ownName, at: place)
      free.add(try ring.join(at: place))
      try place.sweep([.unfinished, .attachment])
      ring.begin(after: Self.pause)
      return
    }
    throw Errno.deviceBusy
  }

  private var isWorker: Bool { OtherConsumers.isWorker(ownName) }

  /// - Returns: false if other processes were faster.
  private func beginBesideOthers(at place: QueueDirectory) throws -> Bool {
    try ifPresent(place.makeDirectory(takenPath)) != nil
  }

  /// - Returns: false if other processes were faster.
  private mutating func begin(at place: QueueDirectory) throws -> Bool {
    let consumers = try place.consumers()
    let abandoned = try others.look(at: consumers.sorted()).abandoned
    if let first = abandoned.first {
      let path = QueueDirectory.takenPath(first)
      guard try ifPresent(place.move(path, to: takenPath)) != nil else { return false }
      free.add(try abandoned.dropFirst().compactMap { try place.giveBack($0) })
      return true
    }
    guard consumers.isEmpty else {
      // A consumer that has the queue alone has the role, which this process has then lost.
      guard consumers.allSatisfy(OtherConsumers.isWorker) else { throw queue.replaced() }
      return try ifPresent(place.makeDirectory(takenPath)) != nil
    }
    // A program removed it: an empty directory makes way for a complete one.
    // Another process may be doing the same, or have done it.
    try place.removeIfEmpty(QueueDirectory.taken)
    return false
  }

  /// Takes over the batches of consumers that are gone.
  private mutating func takeOver(at place: QueueDirectory) throws {
    do {
      try tidyTakenOver(at: place)
      for other in try free.take({ try names.read(at: place) }).sorted() {
        let directory = QueueDirectory.takenOver(by: consumer, number: takeovers)
        let path = QueueDirectory.takenPath(directory)
        guard try ifPresent(place.move(QueueDirectory.takenPath(other), to: path)) != nil else {
          continue
        }
        takeovers += 1
        untidied.append(directory)
        try tidyTakenOver(at: place)
      }
    } catch {
      // The next look continues here.
      free.noteEverything()
      throw error
    }
  }

  private mutating func tidyTakenOver(at place: QueueDirectory) throws {
    while let directory = untidied.last {
      try tidy(directory, at: place)
      untidied.removeLast()
      // If it is not empty, it ends with its entries.
      _ = try tolerating(
        [.directoryNotEmpty, .alreadyExists],
        removeDirectory(QueueDirectory.takenPath(directory), at: place.descriptor.rawValue))
    }
  }

  private mutating func tidy(_ directory: String, at place: QueueDirectory) throws {
    let path = QueueDirectory.takenPath(directory)
    let names = try place.list(path)?.map(\.name.text) ?? []
    var batches = names.compactMap { EntryFile($0) }
    // The parts of a batch that is there as a whole: their worker was about to share it.
    let whole = Set(batches.filter { $0.part == nil })
    batches.removeAll { $0.part != nil && whole.contains($0.whole) }
    try clean(path, of: names, batches, at: place)
    if names.contains(where: { $0.hasPrefix(AttachmentLayout.takenPrefix) }) {
      let needed = try batches.reduce(into: Set<String>()) { needed, batch in
        needed.formUnion(try place.attachmentIDs(batch, in: path).compactMap { $0 })
      }
      try place.sweepAttachments(takenBy: directory) { needed.contains($0) }
    }
    left += batches.map { TakenFile(directory: directory, name: $0, isTakenBefore: true) }
    sortLeft()
  }

  private func clean(
    _ path: String, of names: [String], _ batches: [EntryFile], at place: QueueDirectory
  ) throws(Errno) {
    let batchNames = Set(batches.map(\.text))
    for name in names {
      if name.hasPrefix(AttachmentLayout.makingPrefix) {
        try place.clear(path + "/" + name) { entry throws(Errno) in
          try place.removeAttachmentDirectory(entry)
        }
        continue
      }
      let isOrphan =
        (QueueDirectory.batch(besideWhich: name) ?? EntryFile(name)?.text)
        .map { !batchNames.contains($0) } ?? false
      guard isOrphan || name.hasPrefix(QueueDirectory.passingPrefix) else { continue }
      try place.clear(path + "/" + name) { entry throws(Errno) in try place.discard(entry) }
    }
  }

  private mutating func sortLeft() { left = left.ordered { $1.name.precedes($0.name) } }

  var place: DirectoryMembership {
    DirectoryMembership(
      takenPath: takenPath, directory: terms.directory, arrivals: arrivals, free: free,
      names: names, ring: ring)
  }

  mutating func take(until deadline: ContinuousClock.Instant?) throws -> TakeResult {
    let place = try terms.directory.openForConsumer(until: deadline)
    try takeOver(at: place)
    if let index = left.indices.last {
      guard !left[index].isToShare else {
        try share(at: index, place)
        return .again
      }
      let batch = try open(left[index], at: place)
      left.remove(at: index)
      return batch.map { .batch($0) } ?? .again
    }
    guard
      let name = try waiting.next(listing: { try place.ordered(QueueDirectory.pending) })
    else {
      // A replaced consumer must not wait forever.
      try confirm(at: place)
      return .nothing(until: waiting.due)
    }
    var file = TakenFile(directory: consumer, name: name)
    file.isToShare = terms.isWorker && name.count > 1
    let waiting = QueueDirectory.pending + "/" + file.text
    let isTaken = try ifPresent(place.move(waiting, to: file.path)) != nil
    // It was cancelled, another worker has it, or this consumer was replaced.
    if !isTaken { try confirm(at: place) }
    self.waiting.remove(name)
    guard isTaken else { return .again }
    // If a step fails now, for example for lack of descriptors, it is still the next.
    left.append(file)
    guard !file.isToShare else {
      sortLeft()
      return .again
    }
    let batch = try open(file, at: place)
    left.removeLast()
    return batch.map { .batch($0) } ?? .again
  }

  /// Shares a batch among the workers: each of its entries gets a name of its own. The first one stays
  /// here, and the others wait again.
  ///
  /// The names mean nothing as long as the batch has its own beside them. So renaming it is the
  /// decisive step: a successor of this worker finds the whole batch, or all of its parts. Each of
  /// them moves back once, and never again.
  ///
  /// If a file cannot have several names, or there is no room for them, this worker keeps it all.
  private mutating func share(at index: Int, _ place: QueueDirectory) throws {
    let file = left[index]
    let parts = file.name.indices.map { TakenFile(directory: consumer, name: file.name.of($0)) }
    do throws(Errno) {
      for part in parts.dropFirst() {
        // From an attempt that failed.
        _ = try tolerating([.alreadyExists], place.link(file.path, to: part.path))
      }
    } catch {
      let cannotShare = [.notPermitted, .unsupported, .noFunction, .tooManyLinks].contains(error)
      guard cannotShare || error.isLackOfRoom else { throw error }
      for part in parts.dropFirst() { try place.discard(part.path) }
      left[index].isToShare = false
      return
    }
    try place.move(file.path, to: parts[0].path)
    left.replaceSubrange(index...index, with: parts.reversed())
    // They go before entries that this worker knows already.
    arrivals.noteEverything()
    // The last one first: if killed here, this worker keeps what precedes all that waits again.
    let others = Array(parts.dropFirst())
    for part in LeaseFault.sharingForwards.isActive ? others : others.reversed() {
      try place.move(part.path, to: QueueDirectory.pendingPath(part.name))
      left.removeAll { $0.name == part.name }
    }
  }

  mutating func close() {
    for file in exchange(&left, with: []) where !file.isTakenBefore && file.name.count == 1 {
      let storage = DirectoryTaken(
        directory: terms.directory, consumer: file.directory, path: file.path)
      let note = DeliveryLog.givenBackLine(file.name.indices.lowerBound)
      // Without the note, the taking counts as an attempt.
      _ = try? storage.log(note, until: nil)
    }
  }

  private func confirm(at place: QueueDirectory) throws {
    guard try place.exists(takenPath) else { throw queue.replaced() }
  }

  /// - Returns: nil if it has no entry to deliver.
  private func open(_ file: TakenFile, at place: QueueDirectory) throws -> TakenBatch? {
    do {
      guard let bytes = try place.read(file.path) else {
        // A program removed it, or the whole queue.
        try confirm(at: place)
        return nil
      }
      let batch: Batch
      do throws(Batch.Unreadable) {
        batch = try Batch(bytes: bytes, count: file.name.total)
      } catch {
        guard Batch.isIncomplete(bytes, of: file.name.bytes) else { throw error }
        try drop(file, at: place)
        return nil
      }
      let settled = file.isTakenBefore ? try settled(file, batch, at: place) : []
      guard settled.count < file.name.count else {
        // Its consumer died when everything was settled except for the last step.
        try place.discard(file.path)
        try place.discardNotes(beside: file.path)
        return nil
      }
      let log =
        file.isTakenBefore
        ? DeliveryLog(
          try place.readNote(file.path + QueueDirectory.deliveriesSuffix),
          taken: file.name.count == 1 ? file.name.indices.first : nil) : DeliveryLog()
      return TakenBatch(
        file.name, batch, settled: settled, log: log, by: file.directory,
        in: DirectoryTaken(
          directory: terms.directory, consumer: file.directory, path: file.path),
        terms: terms)
    } catch let error as Batch.Unreadable {
      try putAside(file, error.reason, at: place)
      return nil
    }
  }

  // An entry with a note, or one that is kept, has ended, even if its consumer died before settling
  // it.
  private func settled(
    _ file: TakenFile, _ batch: Batch? = nil, at place: QueueDirectory
  ) throws -> Set<Int> {
    var settled = try place.settled(file.path)
    let hasKept = try place.exists(QueueDirectory.failed)
    for index in file.name.indices {
      let id = QueueEntryID(batch: file.name, index: index)
      if hasKept, let entry = batch?.entries[index], let failure = try place.failure(id) {
        // The step that its consumer did not reach.
        try place.keep(entry, id, reason: failure.reason, of: file.directory)
        try place.note(.failed(reason: failure.reason), of: id, from: file.directory)
      }
      if try place.exists(QueueDirectory.outcomePath(id)) { settled.insert(index) }
    }
    return settled.intersection(file.name.indices)
  }

  // The power failed before it was on the disk, so it counts as never sent. Only a sender that
  // keeps a receipt may still ask for it. A program that stored it durably, or a person, learns of
  // it by the event.
  private func drop(_ file: TakenFile, at place: QueueDirectory) throws {
    if try place.exists(QueueDirectory.sentPath(file.name)) {
      try fail(file, "the power failed before it was on the disk", at: place)
    }
    try place.putAside(file.path)
    try place.discardNotes(beside: file.path)
  }

  /// Records the failure of every entry that has not ended.
  private func fail(_ file: TakenFile, _ reason: String, at place: QueueDirectory) throws {
    let settled = try settled(file, at: place)
    for index in file.name.indices where !settled.contains(index) {
      let id = QueueEntryID(batch: file.name, index: index)
      try place.note(.failed(reason: reason), of: id, from: file.directory)
    }
  }

  // The notes first: its sender then learns of it, whatever happens next.
  private func putAside(_ file: TakenFile, _ reason: String, at place: QueueDirectory) throws {
    try fail(file, "it could not be read: \(reason)", at: place)
    try place.putAside(file.path)
    try place.discardNotes(beside: file.path)
  }
}
