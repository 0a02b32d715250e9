public import AppGroup
import FoundationEssentials
import PropertyLists

/// Messages of one type under one identifier: the latest one is kept, every listener hears of it.
///
/// Any number of processes send and listen; the file holds exactly the message as a property list,
/// so the `wormhole` command and `MMWormhole` with the same identifier take part. Copies of a
/// channel are one participant: each hears what the others send as its own echo.
public struct Channel<Message: Codable & Sendable>: Sendable {
  /// The container whose processes are reached.
  public var container: SharedContainer { value.container }
  /// The identifier of the messages.
  public var identifier: String { value.identifier }

  private let value: Value
  private let own = OwnStamps()

  /// A channel in a container; nothing is touched before it is used.
  public init(_ identifier: String, in container: SharedContainer) {
    value = container.value(identifier)
  }

  /// Passes a message: it takes the place of the last one, in one step.
  ///
  /// - Parameters:
  ///   - message: anything `Codable` that a property list can hold; a string or number, too.
  ///   - durability: what the message survives.
  ///   - deadline: until when to wait for another process's update of the same identifier; by default
  ///     `Value.standardWait` from now.
  /// - Throws: what encoding the message throws, or `AppGroupError`, as `Value.replace`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func send(
    _ message: Message, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws {
    let bytes = try encode(message)
    try value.replace(
      withBytes: bytes, durability: durability, until: deadline, willPublish: own.add)
  }

  /// Passes a message; see the form without `async`. Blocks no thread of the cooperative pool.
  public func send(
    _ message: Message, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    let bytes = try encode(message)
    try await value.replace(
      withBytes: bytes, durability: durability, until: deadline, willPublish: own.add)
  }

  /// The latest message; nil if there never was one, or it was cleared.
  ///
  /// - Throws: `AppGroupError`: `damaged` for bytes that are no `Message`, or as `Value.snapshot`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func latest() throws -> Message? {
    try value.snapshot().decode(Message.self)
  }

  /// The latest message; see the form without `async`.
  public func latest() async throws -> Message? {
    try await value.snapshot().decode(Message.self)
  }

  /// Removes the latest message. Listeners hear of the next one only.
  ///
  /// - Throws: `AppGroupError`, as `Value.remove`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func clear(until deadline: ContinuousClock.Instant? = nil) throws {
    try value.remove(until: deadline)
  }

  /// Removes the latest message; see the form without `async`.
  public func clear(until deadline: ContinuousClock.Instant? = nil) async throws {
    try await value.remove(until: deadline)
  }

  /// Changes the latest message, and nobody else's message comes in between.
  ///
  /// - Parameters:
  ///   - durability: what the message survives.
  ///   - deadline: until when to wait for other updates.
  ///   - body: gets the latest message, nil if there is none, and leaves the new one there; nil
  ///     clears it. Runs **again**, with the latest message, if this process was stopped in the middle
  ///     and overtaken: it should have no other effects.
  /// - Returns: what `body` returns.
  /// - Throws: what `body` throws, or `AppGroupError`, as `Value.update`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Message?) throws -> Result
  ) throws -> Result {
    try value.edit(
      .init(durability, deadline, willPublish: own.add), edited(body))
  }

  /// Changes the latest message; see the form without `async`.
  public func update<Result: Sendable>(
    durability: Durability = .standard, until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Message?) throws -> Result
  ) async throws -> Result {
    try await value.edit(
      .init(durability, deadline, willPublish: own.add), edited(body))
  }

  private func edited<Result: Sendable>(
    _ body: @escaping @Sendable (inout Message?) throws -> Result
  ) -> @Sendable (Snapshot) throws -> (Edit, Result) {
    { snapshot in
      var message = try snapshot.decode(Message.self)
      let wasAbsent = message == nil
      let result = try body(&message)
      guard let message else { return (wasAbsent ? .keep : .remove, result) }
      let bytes = try encode(message)
      let isSame = try snapshot.bytes() == bytes
      return (isSame ? .keep : .replace(bytes), result)
    }
  }

  private func encode(_ message: Message) throws -> [UInt8] {
    Array(try PropertyListCoding.encode(message))
  }

  /// The messages from now on, for `for await`: after any burst at least the last one, and none after
  /// a newer one.
  ///
  /// Any number of listeners may iterate, each with a sequence of its own. Listening begins when this
  /// returns and ends with the iteration or its task.
  ///
  /// - Parameter startsWithCurrent: whether the message that is there now comes first.
  /// - Throws: `AppGroupError` when the container cannot be used any more.
  public func messages(startsWithCurrent: Bool = false) throws -> Messages<Message> {
    Messages(snapshots: try value.snapshots(startsWithCurrent: startsWithCurrent), own: own)
  }
}

/// A message as a listener gets it.
public struct Received<Message: Codable & Sendable>: Sendable {
  private let snapshot: Snapshot
  /// Whether the listener's own channel sent it, or a copy of that channel.
  public let isOwn: Bool

  init(snapshot: Snapshot, isOwn: Bool) {
    self.snapshot = snapshot
    self.isOwn = isOwn
  }

  /// The message.
  ///
  /// Throws `AppGroupError`, as `Channel.latest`, for a file that is no such message: one damaged
  /// message does not end the listening.
  public var message: Message {
    get throws {
      guard let message = try snapshot.decode(Message.self) else {
        preconditionFailure("an absent message is never delivered")
      }
      return message
    }
  }
}

/// The messages of a channel as they come.
public struct Messages<Message: Codable & Sendable>: AsyncSequence, Sendable {
  let snapshots: Snapshots
  let own: OwnStamps

  /// Begins to iterate; one task at a time.
  public func makeAsyncIterator() -> Iterator {
    Iterator(snapshots: snapshots.makeAsyncIterator(), own: own)
  }

  /// Waits for the next message.
  public struct Iterator: AsyncIteratorProtocol {
    private var snapshots: Snapshots.Iterator
    private let own: OwnStamps

    init(snapshots: Snapshots.Iterator, own: OwnStamps) {
      self.snapshots = snapshots
      self.own = own
    }

    /// The next message; nil when the task was cancelled.
    public mutating func next() async -> Received<Message>? {
      while let snapshot = await snapshots.next() {
        guard !isAbsence(snapshot) else { continue }
        let isOwn = snapshot.version.map { own.contains($0.stamp) } ?? false
        return Received(snapshot: snapshot, isOwn: isOwn)
      }
      return nil
    }

    // A cleared message is no message; one that cannot be read is, and its error is heard.
    private func isAbsence(_ snapshot: Snapshot) -> Bool {
      do {
        return try snapshot.bytes() == nil
      } catch {
        return false
      }
    }
  }
}
