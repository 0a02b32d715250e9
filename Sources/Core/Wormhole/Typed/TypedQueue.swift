import WormholePropertyLists

/// A queue whose entries have one type of the program, with the promises of `Queue`.
///
/// A file of the queue holds exactly the content as a property list, so every other program that knows
/// the name takes part.
///
/// ```swift
/// struct Job: Codable, Sendable { var film: String; var copies: Int }
///
/// let jobs = container.queue("print", of: Job.self)
/// try await jobs.sender("box office").enqueue(Job(film: "Metropolis", copies: 2))
///
/// for try await entry in try await jobs.work(attempts: 3) {
///   print(try entry.content?.film ?? "")
///   try entry.acknowledge()
/// }
/// ```
public struct TypedQueue<Content: Codable & Sendable>: Sendable {
  /// The queue itself, for its failures and receipts.
  public let queue: Queue

  /// The entries of a consumer, which lasts as long as they are used.
  public typealias Entries = TypedSequence<ConsumerEntries, Content>

  /// Returns a sender of this process; see `Queue.sender`.
  ///
  /// - Parameters:
  ///   - sender: Any string of at most 160 bytes once encoded like the names of values.
  ///   - limits: How many entries and bytes of all senders together may wait.
  /// - Throws: `AppGroupError.Code.unsupportedValue` for a longer name.
  public func sender(
    _ sender: String, limits: Queue.Limits = .standard
  ) throws -> TypedSender<Content> {
    TypedSender(sender: try queue.sender(sender, limits: limits))
  }

  /// Becomes the queue's consumer until the loop over the entries ends; see `Queue.consume`.
  ///
  /// - Parameters:
  ///   - deadline: How long to wait for the current consumer; by default 10 seconds from now.
  ///   - attempts: After this many attempts an entry that has not ended fails, and is kept.
  /// - Throws: `AppGroupError.Code.timedOut`, whose `holder` is the current consumer; or errors of
  ///   the file system.
  public func consume(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) async throws -> Entries {
    entries(of: try await queue.consume(until: deadline, attempts: attempts))
  }

  /// Becomes one of the queue's workers until the loop over the entries ends; see `Queue.work`.
  ///
  /// - Parameters:
  ///   - deadline: How long to wait for a consumer that has the queue alone.
  ///   - attempts: After this many attempts an entry that has not ended fails, and is kept.
  /// - Throws: As `consume`.
  public func work(
    until deadline: ContinuousClock.Instant? = nil, attempts: Int? = nil
  ) async throws -> Entries {
    entries(
      of: try await queue.work(
        until: deadline, attempts: attempts))
  }

  /// Works until the task is cancelled; see `Queue.work(attempts:backoff:concurrency:grace:_:)`. An
  /// entry of another shape fails and is kept.
  ///
  /// - Parameters:
  ///   - attempts: The number of attempts after which an entry has failed.
  ///   - backoff: The pause after the first failed attempt.
  ///   - concurrency: How many entries this process handles at a time.
  ///   - grace: The time that the entries in hand have to end after the task was cancelled.
  ///   - handler: Handles the content of an entry, which comes with it.
  /// - Throws: As `Queue.work`.
  public func work(
    attempts: Int? = nil, backoff: Duration = .seconds(1), concurrency: Int = 1,
    grace: Duration = .seconds(10),
    _ handler: @escaping @Sendable (Content, QueueEntry) async throws -> Void
  ) async throws {
    try await worker(
      attempts: attempts, backoff: backoff, concurrency: concurrency, grace: grace, handler
    ).run()
  }

  /// Returns what `work` does, as a service to be run later.
  ///
  /// - Parameters:
  ///   - attempts: The number of attempts after which an entry has failed.
  ///   - backoff: The pause after the first failed attempt.
  ///   - concurrency: How many entries this process handles at a time.
  ///   - grace: The time that the entries in hand have to end after the task was cancelled.
  ///   - handler: Handles the content of an entry.
  public func worker(
    attempts: Int? = nil, backoff: Duration = .seconds(1), concurrency: Int = 1,
    grace: Duration = .seconds(10),
    _ handler: @escaping @Sendable (Content, QueueEntry) async throws -> Void
  ) -> WormholeService {
    queue.worker(attempts: attempts, backoff: backoff, concurrency: concurrency, grace: grace) {
      entry in
      let content: Content
      do {
        content = try entry.payload.decode()
      } catch {
        return try entry.fail("\(error)", isKept: true)
      }
      try await handler(content, entry)
    }
  }

  /// Returns the entries that a consumer takes, for `for try await`.
  ///
  /// - Parameter consumer: A consumer of this queue.
  public func entries(of consumer: Queue.Consumer) -> Entries {
    Entries(consumer.entries()) { try $0.payload.decode() }
  }
}

/// A sender of entries that have one type of the program.
///
/// ```swift
/// let sender = try container.queue("print", of: String.self).sender("box office")
/// try await sender.enqueue("Metropolis", durability: .durable)
/// ```
public struct TypedSender<Content: Codable & Sendable>: Sendable {
  /// The sender itself, for the outcomes of its entries.
  public let sender: Queue.Sender

  /// Stores an entry; it is in the queue when this returns. See `Queue.Sender.enqueue`.
  ///
  /// - Parameters:
  ///   - content: Any `Codable` value that a property list can hold.
  ///   - durability: With `.durable` the entry survives a loss of power from then on.
  ///   - expiry: The time after which it is no longer delivered; by default never.
  ///   - key: Older entries of this sender with the same key that no consumer has taken are not
  ///     delivered.
  ///   - delay: How long it is not taken.
  ///   - fence: Of a role in the same container; the entry is stored only while no other process has
  ///     entered.
  /// - Returns: The id for asking about the entry later.
  /// - Throws: The error of encoding; otherwise as `Queue.Sender.enqueue`.
  @discardableResult
  public func enqueue(
    _ content: Content, durability: Durability = .standard, expires expiry: Duration? = nil,
    key: String? = nil, delay: Duration? = nil,
    while fence: Fence? = nil
  ) async throws -> QueueEntryID {
    try await sender.enqueue(
      PropertyListValue(encoding: content), durability: durability, expires: expiry, key: key,
      delay: delay, while: fence)
  }
}

extension SharedContainer {
  /// Returns the queue with a name, for entries of one type of the program. Touches no file.
  ///
  /// - Parameters:
  ///   - name: Any string, compared byte by byte.
  ///   - content: The type of the entries.
  public func queue<Content>(_ name: String, of content: Content.Type) -> TypedQueue<Content> {
    TypedQueue(queue: queue(name))
  }
}
