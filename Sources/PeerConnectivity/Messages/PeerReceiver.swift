public import Dispatch
public import FoundationEssentials
public import PropertyLists

/// The one who receives the messages for a name, until it is forgotten or ended. Thread-safe.
public final class PeerReceiver: Sendable {
  init() {}

  /// The next message, and waits for one if there is none.
  ///
  /// - Returns: nil when the deadline has passed.
  /// - Throws: `PeerError`: `replaced` when another process receives now.
  public func next(until deadline: ContinuousClock.Instant) throws -> PeerMessage? {
    preconditionFailure("unbuilt")
  }

  /// The next message; see the form without `async`.
  public func next(until deadline: ContinuousClock.Instant) async throws -> PeerMessage? {
    preconditionFailure("unbuilt")
  }

  /// Calls a handler with each message from now on, one at a time and in order; a message is
  /// acknowledged when the handler returns, and failed with what it throws.
  ///
  /// - Parameters:
  ///   - queue: where.
  ///   - failure: called once if receiving ends otherwise than by `end()`.
  ///   - handler: gets the message.
  public func handle(
    on queue: DispatchQueue, failure: @escaping @Sendable (PeerError) -> Void = { _ in },
    _ handler: @escaping @Sendable (PeerMessage) throws -> Void
  ) { preconditionFailure("unbuilt") }

  /// Whether nothing waits and nothing is being handled.
  public func isIdle() throws -> Bool { preconditionFailure("unbuilt") }

  /// Ends receiving; what was not acknowledged is delivered again to the next. Once is enough.
  public func end() { preconditionFailure("unbuilt") }
}

/// A guaranteed message that came, to be acknowledged when it is handled.
public struct PeerMessage: Sendable {
  /// The transfer's id.
  public let id: String
  /// Who sent it.
  public let sender: String
  /// What was sent.
  public let value: PropertyListValue
  /// When it was sent.
  public let sent: Date
  /// Whether it was delivered before, and perhaps handled, by a process that ended.
  public let isRedelivery: Bool

  /// The message as a value of a type.
  ///
  /// - Throws: `PeerError`: `unexpectedValue`.
  public func decode<Message: Decodable>(_ type: Message.Type) throws -> Message {
    preconditionFailure("unbuilt")
  }

  /// Ends it as processed: it is never delivered again.
  public func acknowledge() throws { preconditionFailure("unbuilt") }

  /// Ends it as failed: it is never delivered again, and its sender learns why.
  public func fail(_ reason: String) throws { preconditionFailure("unbuilt") }
}
