import Wormhole
public import WormholePropertyLists

/// A request of another peer, to be answered once. Thread-safe.
///
/// The first answer counts; when a request is released without an answer, its sender learns it.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// phone.handleRequests(on: .main) { request in
///   do {
///     if request.expectsReply { try request.reply(["sold": request.value]) }
///   } catch {
///     print(error)
///   }
/// }
/// ```
public final class PeerRequest: Sendable {
  /// The question.
  public let value: PropertyListValue
  /// The sender, by the name that it gave itself.
  public let sender: String
  /// Whether the sender waits for a value, or only for the receipt that a handler has the request.
  public let expectsReply: Bool

  let call: IncomingCall

  /// - Returns: nil for a call of another form, because other programs may have written anything.
  init?(_ call: IncomingCall) {
    guard case .dictionary(let fields) = call.value, let sender = fields["from"]?.stringValue,
      let expectsReply = fields["expectsReply"]?.boolValue, let value = fields["value"]
    else { return nil }
    self.call = call
    self.value = value
    self.sender = sender
    self.expectsReply = expectsReply
  }

  /// Whether the sender has stopped waiting: it was cancelled, its time passed, or it ended.
  public var isCancelled: Bool { call.isOver }

  /// Calls a handler once, when the sender stops waiting; at once if it has stopped already.
  ///
  /// Not called once the request is answered. It may be called on any thread, so it should be short.
  public func onCancel(_ handler: @escaping @Sendable () -> Void) { call.onEnd(handler) }

  /// Answers with a value.
  ///
  /// - Returns: false if it was answered or cancelled before.
  /// - Throws: `PeerError` when the answer cannot be delivered; the sender then gets an error if it
  ///   can be reached.
  /// - Complexity: create, write, rename, close.
  @discardableResult
  public func reply(_ value: PropertyListValue) throws -> Bool {
    try answer(.reply(value))
  }

  /// Answers with an error: the sender's call ends as `failed` with this reason.
  ///
  /// - Returns: false if it was answered or cancelled before.
  @discardableResult
  public func fail(_ reason: String) throws -> Bool {
    try answer(.failure(code: PeerError.Code.failed.rawValue, reason: reason))
  }

  /// Answers that this peer does not handle such requests: the sender's call ends as `notHandled`.
  ///
  /// - Returns: false if it was answered or cancelled before.
  @discardableResult
  public func refuse(_ reason: String) throws -> Bool {
    try answer(.failure(code: PeerError.Code.notHandled.rawValue, reason: reason))
  }

  // MARK: Inside

  func answer(_ answer: CallAnswer) throws -> Bool {
    try betweenPeers("answer \"\(sender)\"", sender) { try call.answer(answer) }
  }

  /// Sends the receipt that a handler has it, unless the handler has answered.
  func acknowledge() {
    // After an error its sender has that error, if it can be reached; the handler has it anyway.
    _ = try? answer(.reply([:]))
  }
}
