public import FoundationEssentials
import Synchronization

/// Messages of one type under one identifier: the latest message is kept, and every listener
/// receives it.
///
/// Any number of processes send and listen. The file holds exactly the message as a property list,
/// so the `wormhole` command and `MMWormhole` with the same identifier take part. Copies of a
/// channel are one participant: a message that one copy sends is an echo to all of them.
///
/// ```swift
/// struct Ticket: Codable, Sendable { var film: String; var seats: [Int] }
///
/// let tickets = Channel<Ticket>("tickets", in: container)
/// try await tickets.publish(Ticket(film: "Metropolis", seats: [7, 8]))
/// try await tickets.update { $0?.seats.append(9) }
/// for await received in try tickets.messages(startsWithCurrent: true) {
///   print(try received.message.seats)
/// }
/// ```
public struct Channel<Message: Codable & Sendable>: Sendable {
  /// The value that keeps the latest message: to read it, and to remove it. What is written through
  /// it counts as a message of another participant.
  public let value: Value<Message>
  private let own = OwnStamps()

  /// Creates a channel in a container. No file is touched before the first use.
  public init(_ identifier: String, in container: SharedContainer) {
    value = container.value(identifier, as: Message.self)
  }

  /// Passes a message, which replaces the last one in one step.
  ///
  /// - Parameters:
  ///   - message: Any `Codable` value that a property list can hold, even a string or a number.
  ///   - durability: The failures that the message survives.
  ///   - lifetime: The time from now for which it is the latest message, and listeners that have not
  ///     received it still do; nil means forever. See `Value.replace`.
  ///   - deadline: The latest instant to wait for another process's update of the same identifier;
  ///     by default `SharedContainer.standardWait` from now.
  /// - Throws: The error of encoding the message, or `WormholeError`, as `Value.replace`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func publish(
    _ message: Message, durability: Durability = .standard,
    expiresAfter lifetime: Duration? = nil, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    try value.replace(
      withBytes: value.encode(message), durability: durability, expiresAfter: lifetime,
      until: deadline, willPublish: own.add)
  }

  /// Passes a message; see the form without `async`. Blocks no thread of the cooperative pool.
  public func publish(
    _ message: Message, durability: Durability = .standard,
    expiresAfter lifetime: Duration? = nil, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    try await value.replace(
      withBytes: value.encode(message), durability: durability, expiresAfter: lifetime,
      until: deadline, willPublish: own.add)
  }

  /// Changes the latest message atomically: no other message comes between reading and writing.
  ///
  /// - Parameters:
  ///   - durability: The failures that the message survives.
  ///   - deadline: The latest instant to wait for other updates.
  ///   - body: Receives the latest message, nil if there is none, and leaves the new one there; nil
  ///     clears it. It runs **again**, with the latest message, if this process was stopped in the
  ///     middle and its lease was taken over. So it should have no other effects.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or `WormholeError`, as `Value.update`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Message?) throws -> Result
  ) throws -> Result {
    try value.edit(
      .init(durability, until: deadline, willPublish: own.add), value.edited(body))
  }

  /// Changes the latest message; see the form without `async`.
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Message?) throws -> Result
  ) async throws -> Result {
    try await value.edit(
      .init(durability, until: deadline, willPublish: own.add), value.edited(body))
  }

  /// Returns the messages from now on, for `for await`: at least the last message of any burst, and
  /// never an older message after a newer one.
  ///
  /// Any number of listeners may iterate, each over its own sequence. Listening begins when this
  /// method returns and ends with the iteration or its task.
  ///
  /// - Parameter startsWithCurrent: Whether the current message comes first.
  /// - Throws: `WormholeError` if the container can no longer be used.
  public func messages(startsWithCurrent: Bool = false) throws -> Messages<Message> {
    Messages(snapshots: try value.snapshots(startsWithCurrent: startsWithCurrent), own: own)
  }
}

/// A message as a listener receives it.
///
/// ```swift
/// for await received in try Channel<String>("greeting", in: container).messages() {
///   guard !received.isOwn else { continue }
///   print(try received.message, "from", received.publisher?.program ?? "a foreign program")
/// }
/// ```
public struct Received<Message: Codable & Sendable>: Sendable {
  fileprivate let snapshot: ValueSnapshot<Message>
  /// The moment at which the message expires; nil if it does not expire.
  public var expiration: Date? { snapshot.expiration }
  /// Whether the listener's own channel, or a copy of it, sent the message.
  public let isOwn: Bool

  /// The process that sent the message, and when; nil if a program that does not use this package
  /// wrote it. See `ValueSnapshot.publisher`.
  public var publisher: Publisher? { snapshot.publisher }

  /// The message.
  ///
  /// Throws `WormholeError`, as `Value.read`, for a file that does not hold such a message. A
  /// damaged message does not end the sequence.
  public var message: Message {
    get throws {
      guard let message = try snapshot.content else {
        preconditionFailure("an absent message is never delivered")
      }
      return message
    }
  }
}

/// The messages of a channel as they arrive.
///
/// ```swift
/// let greetings = try Channel<String>("greeting", in: container).messages(startsWithCurrent: true)
/// for await greeting in greetings { print(try greeting.message) }
/// ```
public struct Messages<Message: Codable & Sendable>: AsyncSequence, Sendable {
  let snapshots: ValueSnapshots<Message>
  let own: OwnStamps

  /// No error ends it.
  public typealias Failure = Never

  /// Creates an iterator; one task at a time.
  public func makeAsyncIterator() -> Iterator {
    Iterator(snapshots: snapshots.makeAsyncIterator(), own: own)
  }

  /// Waits for the next message.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var snapshots: ValueSnapshots<Message>.Iterator
    fileprivate let own: OwnStamps

    /// Returns the next message, or nil if the task was cancelled.
    ///
    /// - Parameter actor: The actor of the caller.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async
      -> Received<Message>?
    {
      while let snapshot = await snapshots.next(isolation: actor) {
        // A cleared message is not a message, and a look that failed shows none. An unreadable message is
        // one, and the listener gets its error.
        guard !snapshot.isRemoved, !snapshot.isUnknown, !snapshot.isKnown else { continue }
        let isOwn = snapshot.version.map { own.contains($0.stamp) } ?? false
        return Received(snapshot: snapshot, isOwn: isOwn)
      }
      return nil
    }
  }
}

/// The publications of a channel, so that it can recognize its echoes. A stamp identifies a
/// publication and is noted just before the message becomes visible.
final class OwnStamps: Sendable {
  // Only the latest publication can be current; the others are for slow listeners.
  private static let remembered = 64
  private let stamps = Mutex<[Stamp]>([])

  func add(_ stamp: Stamp) {
    stamps.withLock { stamps in
      stamps.append(stamp)
      if stamps.count > Self.remembered { stamps.removeFirst() }
    }
  }

  func contains(_ stamp: Stamp) -> Bool {
    stamps.withLock { $0.contains(stamp) }
  }
}
