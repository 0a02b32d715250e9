public import PropertyLists

/// A request of another peer, to be answered once. Thread-safe.
///
/// The first answer counts; one that is forgotten without an answer tells its sender so.
public final class PeerRequest: Sendable {
  /// What was asked.
  public let value: PropertyListValue
  /// Who asks: the name it gave itself.
  public let sender: String
  /// Whether the sender waits for a value, or only to hear that the request was handed over.
  public let expectsReply: Bool

  init(value: PropertyListValue, sender: String, expectsReply: Bool) {
    self.value = value
    self.sender = sender
    self.expectsReply = expectsReply
  }

  /// Whether the sender does not wait any more: it was cancelled, its time passed, or it ended.
  public var isCancelled: Bool { preconditionFailure("unbuilt") }

  /// Calls a handler once, when the sender does not wait any more; at once if that is so already.
  public func onCancel(_ handler: @escaping @Sendable () -> Void) { preconditionFailure("unbuilt") }

  /// Answers with a value.
  ///
  /// - Returns: false if it was answered or cancelled before.
  /// - Throws: `PeerError` when the answer cannot be delivered; the sender then gets an error if it
  ///   can be reached at all.
  @discardableResult
  public func reply(_ value: PropertyListValue) throws -> Bool { preconditionFailure("unbuilt") }

  /// Answers with an error: the sender's call ends as `failed` with this reason.
  ///
  /// - Returns: false if it was answered or cancelled before.
  @discardableResult
  public func fail(_ reason: String) throws -> Bool { preconditionFailure("unbuilt") }

  /// Answers that nobody here handles such a request: the sender's call ends as `notHandled`.
  @discardableResult
  public func refuse(_ reason: String) throws -> Bool { preconditionFailure("unbuilt") }
}
