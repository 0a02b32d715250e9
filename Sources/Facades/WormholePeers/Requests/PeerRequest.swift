import Dispatch
import Synchronization
import Wormhole
public import WormholePropertyLists
import WormholeSystem
import WormholeToolkit

/// Another peer's request, to be answered once. Thread-safe.
///
/// The first answer counts; if a request is released without an answer, its sender learns of it.
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

  /// The value of a call that asks; the initializer reads it.
  static func content(
    _ value: PropertyListValue, from sender: String, expectsReply: Bool
  ) -> PropertyListValue {
    ["from": .string(sender), "expectsReply": .boolean(expectsReply), "value": value]
  }

  /// - Returns: nil for a call of another form, because other programs may have written anything.
  init?(_ call: IncomingCall) {
    guard let sender = call.value["from"]?.stringValue, let value = call.value["value"],
      let expectsReply = call.value["expectsReply"]?.boolValue
    else { return nil }
    self.call = call
    self.value = value
    self.sender = sender
    self.expectsReply = expectsReply
  }

  /// Whether the sender has stopped waiting: it was cancelled, its time passed, or it ended.
  public var isCancelled: Bool { call.isOver }

  /// Calls a handler once, when the sender stops waiting; at once if it has already stopped.
  ///
  /// Not called once the request is answered. It may be called on any thread, so it should be short.
  public func onCancel(_ handler: @escaping @Sendable () -> Void) { call.onEnd(handler) }

  /// Answers with a value.
  ///
  /// - Returns: false if it was answered or cancelled before.
  /// - Throws: `WormholeError` if the answer cannot be delivered; the sender then gets an error if it
  ///   can be reached.
  /// - Complexity: connect and send; a file for more than 16 KiB, or if the peer has fallen behind.
  @discardableResult
  public func reply(_ value: PropertyListValue) throws -> Bool {
    try answer(.reply(value))
  }

  /// Answers with an error, as `reply`: the sender's call ends as `failed` with this reason.
  @discardableResult
  public func fail(_ reason: String) throws -> Bool {
    try answer(.failure(code: WormholeError.Code.failed.rawValue, reason: reason))
  }

  /// Answers, as `reply`, that this peer does not handle such requests: the sender's call ends as
  /// `notHandled`.
  @discardableResult
  public func refuse(_ reason: String) throws -> Bool {
    try answer(.failure(code: WormholeError.Code.notHandled.rawValue, reason: reason))
  }

  // MARK: Inside

  func answer(_ answer: CallAnswer) throws -> Bool {
    try betweenPeers("answer \"\(sender)\"", sender) { try call.answer(answer) }
  }

  /// Sends the receipt that a handler has it, unless the handler has answered.
  func acknowledge() {
    // After an error, its sender has that error, if it can be reached; the handler has it anyway.
    _ = try? answer(.reply([:]))
  }
}

/// The requests of other processes to one session: they wait for a handler, and are handed over.
final class IncomingRequests: Sendable {
  /// Begins to handle a request; enqueues, and never blocks.
  typealias Handler = @Sendable (PeerRequest) -> Void
  typealias Work = @Sendable () async throws -> PropertyListValue

  private struct State {
    /// None yet: they wait.
    var handler: Handler?
    var waiting: [PeerRequest] = []
  }

  private let state = Mutex(State())

  /// Takes a request; on the thread that read it, which may be the monitor's.
  func receive(_ request: PeerRequest) {
    let waits = state.withLock { state in
      // Under the lock, so that none overtakes another.
      state.handler?(request)
      if state.handler == nil { state.waiting.append(request) }
      return state.handler == nil
    }
    if waits { forgetOnceCancelled(request) }
  }

  /// A request without a caller need not wait for a handler.
  private func forgetOnceCancelled(_ request: PeerRequest) {
    let key = request.call.key
    request.onCancel { [weak self] in
      let waiting = self?.state.withLock { state in
        defer { state.waiting.removeAll { $0.call.key == key } }
        return state.waiting
      }
      // Released outside the lock.
      _ = waiting
    }
  }

  // MARK: Handing over

  func handle(_ handler: @escaping Handler) {
    let (waiting, last) = state.withLock { state in
      let before = (state.waiting, state.handler)
      state = State(handler: handler)
      for request in before.0 { handler(request) }
      return before
    }
    _ = (waiting, last)
  }

  func offer(on queue: DispatchQueue, _ handler: @escaping @Sendable (PeerRequest) -> Bool) {
    let (waiting, last) = state.withLock { state in
      defer {
        state = State { [weak self] request in
          queue.async { [weak self] in self?.offer(request, handler) }
        }
      }
      return (state.waiting, state.handler)
    }
    _ = last
    // Not after the later requests, whose calls may already be enqueued.
    for request in waiting { offer(request, handler) }
  }

  private func offer(_ request: PeerRequest, _ handler: (PeerRequest) -> Bool) {
    guard !Self.call(request, handler) else { return }
    state.withLock { $0.waiting.append(request) }
    forgetOnceCancelled(request)
  }

  /// - Returns: false if the handler leaves it.
  @discardableResult
  static func call(_ request: PeerRequest, _ handler: (PeerRequest) -> Bool) -> Bool {
    guard !request.isCancelled else {
      request.call.end()
      return true
    }
    guard handler(request) else { return false }
    // Unless the handler has refused it.
    if !request.expectsReply { request.acknowledge() }
    return true
  }

  /// Handles each request in its own task; `prepare` is short, refuses a request of another type,
  /// and returns the work.
  func handleAsTasks(_ prepare: @escaping @Sendable (PeerRequest) throws(WormholeError) -> Work) {
    handle { request in
      let task = Task {
        guard !request.isCancelled else { return request.call.end() }
        let answer = await Self.answer(to: request, prepare)
        // After an error, its sender has that error, if it can be reached.
        _ = try? await Blocking.run { try request.answer(answer) }
      }
      request.onCancel { task.cancel() }
    }
  }

  private static func answer(
    to request: PeerRequest, _ prepare: (PeerRequest) throws(WormholeError) -> Work
  ) async -> CallAnswer {
    let work: Work
    do throws(WormholeError) {
      work = try prepare(request)
    } catch {
      return .failure(code: error.code.rawValue, reason: error.reason)
    }
    do {
      if !request.expectsReply { try await Blocking.run { request.acknowledge() } }
      return .reply(try await work())
    } catch {
      return .failure(code: WormholeError.Code.failed.rawValue, reason: "\(error)")
    }
  }
}
