import WormholePropertyLists
import WormholeSystem

/// A consumer's place in `taken/`, and how batches get there: first those of consumers that are gone,
/// then waiting ones.
struct DirectoryConsumer: ConsumerSource {
  struct TakenFile {
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

  let queue: PlainQueue
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
  let terms: DeliveryTerms
  /// Receives what the watch of `pending/` reports.
  private let arrivals = Arrivals()
  /// Batches that others had taken before, with the next at the end; and batches that this consumer
  /// took and could not open.
  private var left: [TakenFile] = []
  private var waiting: WaitingEntries
  /// What waits under the name of an entry, and cannot be taken.
  private var immovable: Set<EntryFile> = []

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
      try tidyOwn(at: place)
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
      let isTidy = try passing(QueueDirectory.takenPath(directory)) {
        try tidy(directory, at: place)
      }
      untidied.removeLast()
      // If it is not empty, it ends with its entries.
      if isTidy {
        _ = try tolerating(
          [.directoryNotEmpty, .alreadyExists],
          removeDirectory(QueueDirectory.takenPath(directory), at: place.descriptor.rawValue))
      }
    }
  }

  /// Looks into the directory with which it begins; a planted one of which it can make nothing is
  /// replaced.
  private mutating func tidyOwn(at place: QueueDirectory) throws {
    guard try !passing(takenPath, { try tidy(ownName, at: place) }) else { return }
    let aside = QueueDirectory.takenOver(by: ownName, number: takeovers)
    takeovers += 1
    try place.move(takenPath, to: QueueDirectory.takenPath(aside))
    try place.makeDirectory(takenPath)
  }

  /// Takes a step that concerns one name. An error for this name only is reported.
  ///
  /// - Returns: false after such an error.
  private func passing(_ path: String, _ step: () throws -> Void) throws -> Bool {
    do {
      try step()
      return true
    } catch let error as Errno where Self.errorsOfNames.contains(error) {
      report(error, path)
      return false
    }
  }

  private func report(_ error: Errno, _ path: String) {
    Diagnostics.report(
      WormholeError(
        .inputOutput, "consume \"\(queue.name)\"", path: queue.path + "/" + path,
        reason: "another program has put it there, or changed it: \(error)",
        remedy: "the others are delivered; remove it", errorNumber: error.rawValue))
  }

  private static let errorsOfNames: [Errno] = [
    .accessDenied, .notPermitted, .notDirectory, .isDirectory, .directoryNotEmpty,
    .tooManyLinks, .deviceBusy,
  ]

  private mutating func tidy(_ directory: String, at place: QueueDirectory) throws {
    let path = QueueDirectory.takenPath(directory)
    let names = try place.list(path)?.map(\.name.text) ?? []
    var batches = names.compactMap { EntryFile($0) }
    // The parts of a batch that is there as a whole: their worker was about to share it.
    let whole = Set(batches.filter { $0.part == nil })
    batches.removeAll { $0.part != nil && whole.contains($0.whole) }
    // Its batches are delivered although something else there cannot be removed.
    _ = try passing(path) { try clean(path, of: names, batches, at: place) }
    if names.contains(where: { $0.hasPrefix(AttachmentLayout.takenPrefix) }) {
      let needed = try batches.reduce(into: Set<String>()) { needed, batch in
        needed.formUnion(try place.attachmentIDs(batch, in: path).compactMap { $0 })
      }
      _ = try passing(path) {
        try place.sweepAttachments(takenBy: directory) { needed.contains($0) }
      }
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
      let name = try waiting.next(listing: {
        let names = try place.ordered(QueueDirectory.pending)
        return immovable.isEmpty ? names : names.filter { !immovable.contains($0) }
      })
    else {
      // A replaced consumer must not wait forever.
      try confirm(at: place)
      return .nothing(until: waiting.due)
    }
    var file = TakenFile(directory: consumer, name: name)
    file.isToShare = terms.isWorker && name.count > 1
    let waiting = QueueDirectory.pending + "/" + file.text
    let isTaken: Bool
    do throws(Errno) {
      isTaken = try ifPresent(place.move(waiting, to: file.path)) != nil
    } catch {
      // Moving a directory takes the permission to write to it. Without that for the queue's own
      // directories, none can be taken.
      let kind = try ifPresent(place.fileStatus(waiting))?.kind
      guard error == .notPermitted || error == .accessDenied && kind == .directory else {
        throw error
      }
      report(error, waiting)
      immovable.insert(name)
      self.waiting.remove(name)
      return .again
    }
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

  func confirm(at place: QueueDirectory) throws {
    guard try place.exists(takenPath) else { throw queue.replaced() }
  }
}
