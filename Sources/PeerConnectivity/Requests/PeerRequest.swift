import AppGroup
import Dispatch
public import PropertyLists
import Synchronization

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

  private struct State {
    var isAnswered = false
    var isCancelled = false
    var onCancel: [@Sendable () -> Void] = []
  }

  let key: IncomingRequests.Key
  private let expiry: Expiry
  private let requester: Requester
  private let state = Mutex(State())
  /// Called when it is forgotten.
  private let forgotten: @Sendable (IncomingRequests.Key) -> Void

  init(
    _ call: RequestMessage.IncomingCall, from requester: Requester,
    forgotten: @escaping @Sendable (IncomingRequests.Key) -> Void
  ) {
    value = call.value
    sender = call.sender
    expectsReply = call.expectsReply
    key = .init(id: call.id, replyTo: call.replyTo)
    expiry = call.expiry
    self.requester = requester
    self.forgotten = forgotten
  }

  deinit {
    forgotten(key)
    guard state.withLock({ !$0.isAnswered && !$0.isCancelled }) else { return }
    let (id, requester) = (key.id, requester)
    // Whoever lets go of it may be a task.
    Blocking.queue().async {
      requester.answerIfPossible(
        id, .failure(.init(.notAnswered, "its handler let the request go without an answer")))
    }
  }

  /// Whether the sender does not wait any more: it was cancelled, its time passed, or it ended.
  public var isCancelled: Bool { state.withLock { $0.isCancelled } || expiry.hasPassed }

  /// Calls a handler once, when the sender does not wait any more; at once if that is so already.
  ///
  /// Not called once the request is answered. It may be called on any thread, so it should be short.
  public func onCancel(_ handler: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      guard !state.isCancelled else { return true }
      if !state.isAnswered { state.onCancel.append(handler) }
      return false
    }
    if isOver { return handler() }
    // A sender that is stopped does not say that its time has passed.
    Blocking.timers.asyncAfter(deadline: .now() + expiry.remaining.dispatchInterval) {
      [weak self] in self?.cancel()
    }
  }

  /// Answers with a value.
  ///
  /// - Returns: false if it was answered or cancelled before.
  /// - Throws: `PeerError` when the answer cannot be delivered; the sender then gets an error if it
  ///   can be reached at all.
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
    try answer(.failure(.init(.failed, reason)))
  }

  /// Answers that nobody here handles such a request: the sender's call ends as `notHandled`.
  ///
  /// - Returns: false if it was answered or cancelled before.
  @discardableResult
  public func refuse(_ reason: String) throws -> Bool {
    try answer(.failure(.init(.notHandled, reason)))
  }

  // MARK: Inside

  func answer(_ answer: PeerAnswer) throws -> Bool {
    let isFirst = state.withLock { state in
      guard !state.isAnswered, !state.isCancelled else { return false }
      state.isAnswered = true
      state.onCancel = []
      return true
    }
    guard isFirst else { return false }
    do {
      return try requester.answer(key.id, answer)
    } catch {
      let failure = PeerError(any: error, "answer \"\(sender)\"", peer: sender)
      requester.answerIfPossible(
        key.id, .failure(.init(.failed, "its answer could not be delivered: \(failure.reason)")))
      throw failure
    }
  }

  /// Tells the sender that a handler has it, unless the handler has answered.
  func acknowledge() {
    do {
      _ = try answer(.reply([:]))
    } catch {
      // Its sender was told, if it can be; the handler has it all the same.
      return
    }
  }

  /// The sender does not wait any more.
  func cancel() {
    let handlers = state.withLock { state -> [@Sendable () -> Void] in
      guard !state.isAnswered, !state.isCancelled else { return [] }
      state.isCancelled = true
      defer { state.onCancel = [] }
      return state.onCancel
    }
    for handler in handlers { handler() }
  }
}

/// A session that asks this one: the way back to it, and whether it lives.
final class Requester: Sendable {
  private let outlet: MailboxOutlet
  private let observation: MailboxObservation

  /// - Parameter ended: called once when the session has ended.
  /// - Returns: nil when it has ended already.
  init?(
    in container: SharedContainer, _ address: String, ended: @escaping @Sendable () -> Void
  ) throws {
    guard let outlet = MailboxOutlet(in: container, to: address),
      let observation = try MailboxObservation(in: container, of: address, ended: ended)
    else { return nil }
    self.outlet = outlet
    self.observation = observation
  }

  /// - Returns: false when the session has ended.
  func answer(_ id: UInt64, _ answer: PeerAnswer) throws -> Bool {
    let message: RequestMessage =
      switch answer {
      case .reply(let value): .reply(id: id, value)
      case .failure(let failure): .failure(id: id, failure)
      }
    switch try outlet.post(message.propertyList) {
    case .posted: return true
    case .gone: return false
    case .full:
      throw PeerError(
        .queueFull, "answer", reason: "too much waits for the one who asks",
        remedy: "it may be stopped")
    }
  }

  func answerIfPossible(_ id: UInt64, _ answer: PeerAnswer) {
    do {
      _ = try self.answer(id, answer)
    } catch {
      // Then its time passes, or it learns that this process ends.
      return
    }
  }
}
