import FoundationEssentials
public import WormholePropertyLists
import WormholeSystem

/// Ordered entries that outlive the processes that sent them. There are many senders, and one
/// consumer at a time (`consume`) or any number of workers that share the entries (`work`). Each
/// entry is delivered until it is acknowledged.
///
/// A sender's entries are delivered in order, even across restarts, crashes and clock jumps;
/// between senders the time of sending decides. An entry that a consumer took and did not
/// acknowledge before it died, or before it was stopped and replaced, is delivered again, first and
/// marked. An entry that its consumer gives back for a while waits alone: later entries of its
/// sender are delivered in the meantime. Workers handle entries of one sender at the same time.
///
/// A sender may **delay** an entry: no consumer takes it before it is due, and until then its sender
/// can cancel or supersede it. Once due, it has the place of an entry sent at that moment.
///
/// ```swift
/// struct Job: Codable, Sendable { var film: String; var copies: Int }
///
/// let jobs = container.queue("jobs", of: Job.self)
/// try await jobs.sender("box office").enqueue(Job(film: "Metropolis", copies: 2))
///
/// let worker = try await jobs.work(attempts: 3)    // what fails three times is kept aside
/// for try await entry in worker.entries() {
///   print(try entry.content.film)
///   try entry.acknowledge()
/// }
/// ```
public struct Queue<Content: Codable & Sendable>: Sendable {
  /// The container that the queue is in.
  public let container: SharedContainer
  /// The queue's name.
  public let name: String

  package let directory: NamedDirectory
  package let clock: @Sendable () -> UInt64

  package init(
    container: SharedContainer, name: String, kind: NameKind = .queue,
    clock: @escaping @Sendable () -> UInt64 = PlainQueue.nanosecondsSince1970
  ) {
    self.init(
      container, name, NamedDirectory(root: container.root, kind: kind, identifier: name), clock)
  }

  private init(
    _ container: SharedContainer, _ name: String, _ directory: NamedDirectory,
    _ clock: @escaping @Sendable () -> UInt64
  ) {
    self.container = container
    self.name = name
    self.directory = directory
    self.clock = clock
  }

  /// The same queue, whatever its content is.
  package var plain: PlainQueue { PlainQueue(container, name, directory, clock) }

  /// Returns this queue for a caller with a deadline; see `SharedContainer.limited`.
  package func limited(until deadline: ContinuousClock.Instant?) -> PlainQueue {
    PlainQueue(
      container: container.limited(until: deadline), name: name, kind: directory.kind, clock: clock)
  }

  package func open() throws -> QueueDirectory? {
    guard let place = try directory.open() else { return nil }
    return QueueDirectory(place, in: directory.root)
  }

  package func openOrMake() throws -> QueueDirectory {
    QueueDirectory(try directory.openOrMake(), in: directory.root)
  }

  /// The path of the queue's directory, which need not exist; on etcd the place of its keys.
  public var path: String { store.path }

  /// Returns a sender of this process.
  ///
  /// Its order and the outcomes of its entries belong to its name; if two processes use one name at
  /// the same time, each keeps its own order.
  ///
  /// - Parameters:
  ///   - sender: any string of at most 160 bytes once encoded like the names of values.
  ///   - limits: how many entries and bytes of all senders together may wait.
  /// - Throws: `WormholeError.Code.unsupportedValue` for a longer name.
  public func sender(
    _ sender: String, limits: QueueLimits = .standard
  ) throws -> QueueSender<Content> {
    let encoded = EncodedName(sender)
    guard encoded.component.utf8.count <= EntryFile.maximumSenderBytes else {
      throw WormholeError(
        .unsupportedValue, "send to \"\(name)\"", path: path,
        reason: "the sender's name has \(encoded.component.utf8.count) bytes once encoded",
        remedy: "take one of at most \(EntryFile.maximumSenderBytes)")
    }
    return QueueSender(self, name: sender, component: encoded.component, limits: limits)
  }

  /// Runs a call; its errors say what was to be done with the queue.
  package func attempt<Result: ~Copyable>(
    _ action: @autoclosure () -> String, _ body: () throws -> Result
  ) throws -> Result {
    try reporting("\(action()) \"\(name)\"", path: path, body)
  }

  /// Returns whether any entry waits or is taken.
  ///
  /// - Throws: `WormholeError` for errors of the file system.
  /// - Complexity: two or three listings.
  package func hasEntries() throws -> Bool {
    try attempt("look at") { try store.hasEntries() }
  }

  static func nanosecondsSince1970() -> UInt64 { realTime().unsignedNanoseconds }

  /// The presence that the consumer holds exclusively.
  package var role: Presence {
    Presence(
      container: container, name: name,
      kind: NameKind(.consumer, isOwn: directory.kind.isOwn))
  }
}

/// The number of entries and bytes that may wait before a sender is refused.
///
/// ```swift
/// let limits = QueueLimits(entries: 1_000, bytes: 1 << 20)
/// let sender = try container.queue("jobs").sender("box office", limits: limits)
/// ```
public struct QueueLimits: Sendable, Hashable {
  /// The largest number of waiting entries.
  public var entries: Int
  /// The largest total size of their files in bytes.
  public var bytes: Int

  /// One million entries, 1 GiB.
  public static let standard = QueueLimits(entries: 1_000_000, bytes: 1 << 30)

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - entries: the largest number of waiting entries.
  ///   - bytes: the largest total size of their files in bytes.
  public init(entries: Int, bytes: Int) {
    self.entries = max(0, entries)
    self.bytes = max(0, bytes)
  }
}

/// A queue, and what belongs to it, for code that looks at no content, or has it as a property list.
package typealias PlainQueue = Queue<PropertyListValue>
package typealias PlainSender = QueueSender<PropertyListValue>
package typealias PlainConsumer = QueueConsumer<PropertyListValue>
package typealias PlainEntry = QueueEntry<PropertyListValue>

extension SharedContainer {
  /// Returns the queue with a name, with property lists as entries; see the form with a type.
  public func queue(_ name: String) -> Queue<PropertyListValue> {
    queue(name, of: PropertyListValue.self)
  }

  /// Returns the queue with a name; no file is touched before the first send or consumer.
  ///
  /// - Parameters:
  ///   - name: any string, compared byte by byte.
  ///   - content: the type of the entries.
  public func queue<Content>(_ name: String, of content: Content.Type) -> Queue<Content> {
    Queue(container: self, name: name)
  }

  /// Returns the names of all queues that were ever sent to or consumed, in no order.
  ///
  /// - Throws: `WormholeError` for errors of the file system.
  public func queueNames() throws -> [String] { try identifiers(of: .queue) }
}

extension OwnNames {
  /// Returns the package's queue with a name; no file is touched before the first send or consumer.
  package func queue(_ name: String) -> PlainQueue {
    PlainQueue(container: container, name: name, kind: .ownQueue)
  }
}

/// The outstanding entries of a queue, for people and programs that maintain it.
extension Queue {
  /// Returns all taken and waiting entries of all senders: first the taken ones, then the others in
  /// their order of delivery.
  ///
  /// Consumers continue meanwhile, so a listed entry may already have ended.
  ///
  /// - Parameter limit: How many waiting entries are enough; by default all. A few more may be
  ///   returned, because entries that were stored together are read together.
  /// - Throws: `WormholeError` for errors of the file system. Unreadable entries are left out.
  /// - Complexity: Four listings or more, and reading each file that is returned.
  public func outstanding(limit: Int = .max) throws -> [QueueReceipt] {
    let found = try attempt("look for entries of") {
      try store.unfinished(of: nil, limit: limit)
    }
    let taken = found.filter { $0.status == .taken }.ordered { $0.id.isBefore($1.id) }
    return taken + found.filter { $0.status == .stored }.ordered { $0.id.precedes($1.id) }
  }

  /// Returns `outstanding`, except that the entries of ended consumers count as waiting: the next
  /// consumer gets them, before all others.
  package func listed(limit: Int = .max) throws -> [QueueReceipt] {
    let abandoned = try abandoned()
    let found = try outstanding(limit: limit).map { receipt in
      var receipt = receipt
      if receipt.id.files.contains(where: abandoned.contains) { receipt.status = .stored }
      return receipt
    }
    return found.filter { $0.status == .taken } + found.filter { $0.status == .stored }
  }

  /// Calls a closure with each entry that `listed` returns, in the same order. In a directory only
  /// the names of waiting entries are in memory, not their contents.
  ///
  /// - Returns: The first entries of the batches in a directory that cannot be read, with the reasons, in
  ///   the order of sending. Their consumer will put them aside.
  package func forEachListed(
    _ body: (QueueReceipt) throws -> Void
  ) throws -> [(id: QueueEntryID, reason: String)] {
    func looking<Result>(_ look: () throws -> Result) throws -> Result {
      try attempt("look for entries of", look)
    }
    guard let place = try looking(open) else {
      for receipt in try listed() { try body(receipt) }
      return []
    }
    let abandoned = try abandoned()
    var listing = QueueListing()
    // An entry that is taken or given back meanwhile is seen before or after it has moved.
    try looking { try listing.addTaken(at: place) }
    let waiting = try looking { try place.ordered(QueueDirectory.pending) }
    try looking { try listing.addTaken(at: place) }
    let taken = Array(listing.found.values).ordered { $0.id.isBefore($1.id) }
    let isAbandoned = { (id: QueueEntryID) in id.files.contains(where: abandoned.contains) }
    for receipt in taken where !isAbandoned(receipt.id) { try body(receipt) }
    for var receipt in taken where isAbandoned(receipt.id) {
      receipt.status = .stored
      try body(receipt)
    }
    for batch in waiting {
      for receipt in try looking({ try listing.waiting(batch, at: place) }) { try body(receipt) }
    }
    return listing.faults.map { (QueueEntryID(batch: $0, index: $0.indices.lowerBound), $1) }
      .ordered { $0.id.isBefore($1.id) }
  }

  /// Returns the batches that were taken by consumers that have ended, in no order.
  package func abandoned() throws -> Set<EntryFile> {
    try attempt("look for entries of") { try store.abandoned() }
  }

  /// Ends as failed the entries of consumers that have ended: one, or all. While another consumer
  /// has the queue alone, it gets them instead.
  ///
  /// - Returns: How many this call has ended.
  package func endAbandoned(
    _ id: QueueEntryID? = nil, reason: String,
    until deadline: ContinuousClock.Instant = .now + SharedContainer.standardWait
  ) throws -> Int {
    var left = try abandoned()
    guard id.map({ $0.files.contains(where: left.contains) }) ?? !left.isEmpty else { return 0 }
    return try attempt("consume") {
      let terms = DeliveryTerms(OpenQueue(plain))
      var joined: QueueMembership?
      while joined == nil {
        do {
          joined = try store.joining(terms, until: .now).run()
        } catch let error as WormholeError where error.code == .timedOut {
          return 0
        } catch let error as WormholeError where error.code == .leaseLost {
          // Stopped while it joined, and replaced: it has begun nothing.
          continue
        }
      }
      guard let membership = joined else { return 0 }
      var source = membership.source
      defer {
        source.close()
        for batch in terms.endAll() { batch.close() }
        membership.place.end(membership.registration, .closed)
      }
      var count = 0
      while !left.isEmpty, .now < deadline {
        switch try source.take(until: deadline) {
        case .again: continue
        case .nothing: return count
        case .batch(let batch):
          // Abandoned batches come first. Any other stays for the next consumer.
          guard left.remove(batch.name) != nil else { return count }
          count += try batch.fail(reason) { id == nil || id == $0 }
        }
      }
      return count
    }
  }

  /// Waits for the first use of a queue that was never used, and creates nothing: neither a name
  /// nor a registration.
  ///
  /// - Parameters:
  ///   - deadline: How long to wait; a past deadline means "look once".
  ///   - willWait: Called before each wait.
  /// - Returns: Whether the queue was ever used.
  /// - Throws: `WormholeError` for errors of the file system. Waits for a removed container.
  package func awaitFirstUse(
    until deadline: ContinuousClock.Instant, willWait: () -> Void
  ) throws -> Bool {
    let queue = limited(until: deadline)
    while true {
      let latch = WakeLatch()
      var watch: (any Cancelling)?
      var pause = deadline
      do {
        watch = try attempt("wait for") { try queue.store.watchFirstUse { latch.raise() } }
        if watch == nil { return true }
      } catch let error as WormholeError where error.code == .containerMissing {
        pause = min(deadline, .now + ContainerRoot.recheck)
      }
      defer { watch?.cancel() }
      guard ContinuousClock.now < deadline else { return false }
      willWait()
      latch.block(until: pause)
    }
  }

  /// Cancels all waiting entries, including delayed ones: they are not delivered, and their senders
  /// learn that they were cancelled. Taken entries stay with their consumer.
  ///
  /// - Parameter deadline: How long to wait for other processes that cancel; by default 10 seconds for
  ///   each step.
  /// - Returns: The number of entries that this call has cancelled.
  /// - Throws: `WormholeError`: as `QueueSender.cancel`. Earlier cancellations remain.
  /// - Complexity: One or two listings; for each file the cost of `QueueSender.cancel`. On etcd two round
  ///   trips for each file.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func cancelAll(until deadline: ContinuousClock.Instant? = nil) throws -> Int {
    try attempt("cancel what waits in") { try store.cancellation(of: nil, until: deadline).run() }
  }

  /// Cancels all waiting entries; see the form without `async`.
  @discardableResult
  public func cancelAll(until deadline: ContinuousClock.Instant? = nil) async throws -> Int {
    try await Blocking.run { try self.cancelAll(until: deadline) }
  }

  // MARK: Failures

  /// Returns the failed entries that were kept, in the order of sending.
  ///
  /// - Throws: `WormholeError` for errors of the file system. Unreadable entries are left out.
  /// - Complexity: one listing, and one file read for each.
  public func failures() throws -> [QueueFailure] {
    try attempt("look for what has failed in") { try store.failures() }
  }

  /// Sends a kept failed entry again, as a new entry of the same sender: with another id, and
  /// without the key, the expiry, the delay and the receipt of the original, whose outcome does not
  /// change.
  ///
  /// - Returns: the new entry's id; nil if the failed entry no longer exists.
  /// - Throws: `WormholeError` for errors of the file system; then the entry is still kept.
  /// - Complexity: a few cheap calls and one rename.
  public func retry(_ id: QueueEntryID) throws -> QueueEntryID? {
    try attempt("send again what has failed in") { try store.retry(id) }
  }

  /// Removes a failed entry that was kept, and the file that came with it.
  ///
  /// - Returns: false if the entry no longer exists.
  /// - Throws: `WormholeError` for errors of the file system.
  @discardableResult
  public func forgetFailure(_ id: QueueEntryID) throws -> Bool {
    try attempt("forget what has failed in") { try store.forgetFailure(id) }
  }

  // MARK: Care

  /// Removes expired records of all senders.
  ///
  /// - Returns: the removed paths.
  package func expire() throws -> [String] { try store.expire() }
}

extension QueueEntryID {
  /// Whether it is to be delivered before another entry.
  fileprivate func precedes(_ other: QueueEntryID) -> Bool {
    batch == other.batch ? index < other.index : batch.precedes(other.batch)
  }
}
