import FoundationEssentials
import Synchronization
import WormholePropertyLists
import WormholeSystem

extension Log {
  /// Reads messages without a name: nothing is stored, and any number of readers may do so.
  ///
  /// - Parameter start: where to begin.
  /// - Throws: `WormholeError.Code.damaged` for a damaged `log.plist`, or errors of the file
  ///   system.
  /// - Complexity: a listing of the log; for a date, a look at each message before it.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func read(from start: LogStart = .beginning) throws -> LogReader<Content> {
    try reading(from: start, nil)
  }

  /// Reads messages without a name; see the form without `async`.
  public func read(from start: LogStart = .beginning) async throws -> LogReader<Content> {
    try await Blocking.run { try reading(from: start, nil) }
  }

  /// Reads for a named subscriber, from its stored position: until `close()`, until the reader is
  /// released, or until the process ends. One process at a time reads for a subscriber; a stopped
  /// one is replaced.
  ///
  /// - Parameters:
  ///   - subscriber: any string.
  ///   - start: where a new subscriber begins.
  ///   - deadline: how long to wait for the process that reads under this name; a past deadline means
  ///     "only if there is none". By default 10 seconds from now.
  /// - Throws: `WormholeError.Code.timedOut`, whose `holder` is that process; otherwise as `read`.
  /// - Complexity: as becoming exclusively present, an update of a value, and a listing of the log.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func subscribe(
    _ subscriber: String, from start: LogStart = .beginning,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> LogReader<Content> {
    try subscription(subscriber, from: start, until: deadline).run()
  }

  /// Reads for a named subscriber; see the form without `async`.
  public func subscribe(
    _ subscriber: String, from start: LogStart = .beginning,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> LogReader<Content> {
    try await runSuspending { subscription(subscriber, from: start, until: deadline) }
  }

  func subscription(
    _ subscriber: String, from start: LogStart, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<LogReader<Content>> {
    let presence = LogCursor.presence(subscriber, of: plain)
    // All attempts together wait this long, not each one.
    let deadline = deadline ?? .now + SharedContainer.standardWait
    let enter = {
      presence.exclusiveEntry(until: deadline) {
        try LogCursor.value(subscriber, of: plain).snapshot().isAbsent
      }
    }
    var entry = enter()
    return StepwiseWait {
      do {
        return try entry.step().then { registration in
          let cursor = LogCursor(log: plain, subscriber: subscriber, registration: registration)
          return .done(try reading(from: start, cursor, until: deadline))
        }
      } catch let error as WormholeError
        where error.code == .leaseLost && !LeaseFault.failingToSubscribe.isActive
      {
        // Stopped while it subscribed, and replaced: it has read nothing.
        entry = enter()
        return .again
      }
    }
  }

  private func reading(
    from start: LogStart, _ cursor: LogCursor?, until deadline: ContinuousClock.Instant? = nil
  ) throws -> LogReader<Content> {
    do {
      return try reporting("read \"\(name)\"", path: path) {
        let reader = LogReader(self, cursor)
        try reader.begin(at: start, until: deadline.map(CallLimit.callDeadline))
        return reader
      }
    } catch {
      cursor?.registration.close()
      throw error
    }
  }
}

/// A reader of a log. Thread-safe. Only one caller should ask for messages: each call ends the one before it.
///
/// **Every message once.** A message counts as read when its reader asks for the next one, or says
/// `acknowledge()`. The position of a named subscriber is then stored, before the next message is
/// delivered. If the process is killed before that, the message is delivered once more, to the next
/// process with this name, and marked `isRedelivery`; so is a message that a process was handling
/// when it was stopped and replaced. There are no other repetitions, except after a loss of
/// power: then the messages of the last second before the loss may be delivered again, unmarked.
///
/// **Slow readers.** If messages were taken away before they were read, the next one has their
/// count: see `LogMessage.missed`.
///
/// ```swift
/// let reader = try await container.log("sales").subscribe("statistics", from: .end)
/// while let message = try await reader.next(until: .now + .seconds(5)) {
///   print(message.payload)
///   try await reader.acknowledge()            // after a crash: not this one again
/// }
/// reader.close()
/// ```
public final class LogReader<Content: Codable & Sendable>: Sendable {
  /// The log.
  public let log: Log<Content>
  /// The subscriber's name; nil without one.
  public var subscriber: String? { cursor?.subscriber }

  private let cursor: LogCursor?
  private let latch = WakeLatch()
  /// Set from the first wait on.
  private let watch = Mutex<(any Cancelling)?>(nil)
  /// The monitor's thread has this and the latch, but not the reader, whose end may wait.
  private let news = News()
  /// Taken only by one caller at a time, for as long as its look lasts.
  private let state = Mutex(LogReading())
  private let isClosed = Atomic(false)

  private final class News: Sendable {
    /// The highest number that has appeared since the last look, by the events of its engine.
    let highest = Atomic(0)

    func note(_ number: Int) {
      highest.max(number, ordering: .sequentiallyConsistent)
    }
  }

  fileprivate init(_ log: Log<Content>, _ cursor: LogCursor?) {
    self.log = log
    self.cursor = cursor
  }

  deinit { close() }

  /// Closes the reader. A message that was delivered and not acknowledged is delivered again. A
  /// caller waiting in `next` is woken with `invalidToken`. Further calls have no effect.
  public func close() {
    isClosed.store(true, ordering: .sequentiallyConsistent)
    watch.withLock { $0.take() }?.cancel()
    cursor?.registration.close()
    latch.raise()
  }

  fileprivate func begin(
    at start: LogStart, until deadline: ContinuousClock.Instant?
  ) throws {
    let log = log.limited(until: deadline)
    guard let cursor else {
      let next = try log.position(of: start)
      return try state.withLock { try $0.begin(at: next, log) }
    }
    if try log.memory.state(of: log.value)?.isCurrent(in: log.store.boot) != true {
      try log.begin(until: deadline ?? .now + SharedContainer.standardWait)
    }
    guard let known = try log.memory.state(of: log.value) else { throw Errno.staleHandle }
    let position = try cursor.takeOver(known, until: deadline) { try log.position(of: start) }
    // If stopped between the two steps, this may have replaced its own successor.
    try cursor.registration.watch()
    try cursor.registration.confirm(until: deadline)
    state.withLock { $0.begin(at: position) }
  }

  /// Returns the next message, and waits for one if there is none. The previous one counts as
  /// read from then on.
  ///
  /// - Parameter deadline: how long to wait; a past deadline means "only if there is one now".
  /// - Returns: nil once the deadline has passed.
  /// - Throws: `WormholeError.Code.leaseLost` if another process has replaced this one as the
  ///   subscriber, `.invalidToken` after it was closed, or errors of the file system. The next
  ///   call then continues at the same position.
  /// - Complexity: open, fstat, read, close; for a named subscriber also an update of a value, and
  ///   another one if it had to wait.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func next(until deadline: ContinuousClock.Instant) throws -> LogMessage<Content>? {
    try nextMessage(until: deadline).run()
  }

  /// Returns the next message; see the form without `async`. Cancelling the task ends the wait with
  /// `CancellationError`.
  public func next(until deadline: ContinuousClock.Instant) async throws -> LogMessage<Content>? {
    try await runSuspending { self.nextMessage(until: deadline) }
  }

  /// Returns the next message, however long it takes; see the form with a deadline.
  public func next() async throws -> LogMessage<Content> {
    guard let message = try await runSuspending({ self.nextMessage(until: nil) }) else {
      preconditionFailure("without a deadline none passes")
    }
    return message
  }

  /// Returns the messages as they arrive, for `for try await`; one loop at a time.
  ///
  /// The loop ends when the reader is closed, and throws as `next`. If you leave the loop, its
  /// last message counts as read only after `acknowledge()`.
  public func messages() -> LogMessages<Content> { LogMessages(reader: self) }

  /// Counts the last message as read, without asking for the next one. Further calls have no effect.
  ///
  /// - Parameter durability: with `.durable` the position also survives a loss of power.
  /// - Throws: `WormholeError`: as `next`.
  /// - Complexity: for a named subscriber an update of a value.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func acknowledge(durability: Durability = .standard) throws {
    try looking { reading in
      reading.finish()
      try save(&reading, durability)
    }
  }

  /// Counts the last message as read; see the form without `async`.
  public func acknowledge(durability: Durability = .standard) async throws {
    try await Blocking.run { try self.acknowledge(durability: durability) }
  }

  /// Continues at another position: messages that were read are delivered again, or others are
  /// skipped. These are not counted as missed, and not marked.
  ///
  /// - Throws: `WormholeError`: as `next`.
  /// - Complexity: as beginning to read.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func seek(to start: LogStart) throws {
    try looking { reading in
      try reading.seek(to: log.plain.position(of: start))
      try save(&reading)
    }
  }

  /// Continues at another position; see the form without `async`.
  public func seek(to start: LogStart) async throws {
    try await Blocking.run { try self.seek(to: start) }
  }

  private func nextMessage(
    until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<LogMessage<Content>?> {
    // All requests of a look end at one time.
    let limit = deadline.map(CallLimit.callDeadline)
    return StepwiseWait { [self] in
      do {
        // One look before each wait: anything later raises the latch.
        if let message = try take(until: limit) { return .done(message) }
      } catch let error as WormholeError where error.code == .containerMissing {
        // It was removed, and may be made again.
        let recheck = ContinuousClock.now + ContainerRoot.recheck
        let next = deadline.map { min($0, recheck) } ?? recheck
        return deadline.hasPassed ? .done(nil) : .wait(for: latch, until: next)
      }
      if deadline.hasPassed { return .done(nil) }
      if try beginWatching(until: limit) { return .again }
      return .wait(for: latch, until: deadline)
    }
  }

  /// - Returns: whether it has just begun, so that the caller has to look once more.
  private func beginWatching(until deadline: ContinuousClock.Instant?) throws -> Bool {
    guard watch.withLock({ $0 == nil }) else { return false }
    let begun = try log.limited(until: deadline).store.watch { [news, latch] in
      news.note($0)
      latch.raise()
    }
    // No event reports a part that was removed before.
    news.highest.store(LogState.largest, ordering: .sequentiallyConsistent)
    // Another caller may have been faster; one watch is released.
    watch.withLock { $0 = begun }
    if isClosed.load(ordering: .sequentiallyConsistent) { close() }
    return true
  }

  /// What it has passed since its last message, and no message has said.
  package var passed: (missed: Int, unreadable: Int) {
    state.withLock { ($0.missed, $0.unreadable) }
  }

  /// For tests: whether a caller waits in `next`.
  package var isAwaited: Bool { latch.isAwaited }

  private func take(until deadline: ContinuousClock.Instant?) throws -> LogMessage<Content>? {
    let log = log.limited(until: deadline)
    return try looking { reading in
      reading.finish()
      let highest = news.highest.exchange(0, ordering: .sequentiallyConsistent)
      guard let message: LogMessage<Content> = try reading.look(log, highest) else {
        try save(&reading, until: deadline)
        return nil
      }
      var delivered = reading
      delivered.deliver()
      try save(&delivered, until: deadline)
      reading = delivered
      return message
    }
  }

  private func looking<Result>(_ body: (inout LogReading) throws -> Result) throws -> Result {
    try reporting("read \"\(log.name)\"", path: log.path) {
      guard !isClosed.load(ordering: .sequentiallyConsistent) else {
        throw WormholeError(
          .invalidToken, "read \"\(log.name)\"", path: log.path, reason: "the reader was closed",
          remedy: "read again")
      }
      return try state.withLock { try body(&$0) }
    }
  }

  private func save(
    _ reading: inout LogReading, _ durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    guard let cursor, let position = reading.unsaved(durability) else { return }
    // A caller that waits for hours learns within seconds that the position cannot be published.
    let limit = ContinuousClock.now + SharedContainer.standardWait
    try cursor.save(position, durability, until: deadline.map { min($0, limit) })
    reading.noteSaved()
  }
}

/// The messages of a log in the order of a reader.
///
/// ```swift
/// let reader = try await container.log("sales").subscribe("statistics")
/// for try await message in reader.messages() { print(message.number, message.payload) }
/// ```
public struct LogMessages<Content: Codable & Sendable>: AsyncSequence, Sendable {
  let reader: LogReader<Content>

  /// Any error may end it.
  public typealias Failure = any Error

  /// Makes an iterator; for one task at a time.
  public func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

  /// The iterator.
  public struct Iterator: AsyncIteratorProtocol {
    let reader: LogReader<Content>

    /// Returns the next message; nil after the reader was closed.
    ///
    /// - Throws: As `LogReader.next`.
    /// - Parameter actor: The actor of the caller.
    public func next(isolation actor: isolated (any Actor)? = #isolation) async throws
      -> LogMessage<Content>?
    {
      do {
        return try await reader.next()
      } catch let error as WormholeError where error.code == .invalidToken {
        return nil
      }
    }
  }
}
