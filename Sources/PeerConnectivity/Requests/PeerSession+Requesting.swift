import AppGroup
import Dispatch
public import PropertyLists
import Synchronization

extension PeerSession {
  /// Asks a peer, and waits for its answer.
  ///
  /// Ends in exactly one of: the reply; `failed`, `notHandled`, `notAnswered` or `unexpectedValue` by
  /// the peer's handler; `unreachable`, at once when nobody answers under that name (and none can be
  /// launched), or when the peer ends before it answers; `timedOut`; `cancelled` with the session;
  /// `queueFull`, `tooLarge`, `unsupportedValue` or what the container refuses when it cannot be sent.
  /// Requests to one peer arrive in the order in which they were made.
  ///
  /// - Parameters:
  ///   - value: what to ask.
  ///   - peer: whom.
  ///   - timeout: how long to wait, starting the peer included.
  /// - Complexity: create, write, rename and close of one file, and open, read, unlink and close of the
  ///   answer's. For the first request to a peer also two looks at its presence, and a watch.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func request(
    _ value: PropertyListValue, to peer: String, timeout: Duration = .seconds(10)
  ) throws -> PropertyListValue {
    try core.ask(value, peer, expectsReply: true, timeout).get()
  }

  /// Asks a peer; see the form without `async`. Cancelling the task ends the call, and tells the peer.
  public func request(
    _ value: PropertyListValue, to peer: String, timeout: Duration = .seconds(10)
  ) async throws -> PropertyListValue {
    try await core.ask(value, peer, expectsReply: true, timeout).get()
  }

  /// Asks a peer with a value of one type, and gets one of another; see the dynamic form.
  ///
  /// - Throws: `PeerError`: also `unsupportedValue` for what cannot be encoded, and `unexpectedValue`
  ///   for an answer of another type.
  public func request<Request: Encodable & Sendable, Reply: Decodable & Sendable>(
    _ value: Request, to peer: String, expecting: Reply.Type, timeout: Duration = .seconds(10)
  ) async throws -> Reply {
    let action = "ask \"\(peer)\""
    let question = try await betweenPeers(action, peer) { try PropertyListValue(encoding: value) }
    return try await core.ask(question, peer, expectsReply: true, timeout).get()
      .decoded(as: Reply.self, action, from: peer)
  }

  /// Asks a peer and goes on; the order of calls is the order in which the peer gets them.
  ///
  /// - Parameters:
  ///   - expectsReply: false to hear only that a handler has the value: the result is then an empty
  ///     dictionary.
  ///   - completion: called exactly once, on a queue of the session.
  /// - Returns: by what to cancel it.
  @discardableResult
  public func request(
    _ value: PropertyListValue, to peer: String, expectsReply: Bool = true,
    timeout: Duration = .seconds(10),
    completion: @escaping @Sendable (Result<PropertyListValue, PeerError>) -> Void
  ) -> PeerCall {
    let callbacks = core.callbacks
    let id = core.begin(value, peer, expectsReply, timeout) { result in
      callbacks.async { completion(result) }
    }
    return PeerCall(id, of: core)
  }

  /// Gives a peer a value at once; returns when a handler of it has it. No reply is expected.
  ///
  /// - Throws: as `request`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func send(
    _ value: PropertyListValue, to peer: String, timeout: Duration = .seconds(10)
  ) throws {
    _ = try core.ask(value, peer, expectsReply: false, timeout).get()
  }

  /// Gives a peer a value at once; see the form without `async`.
  public func send(
    _ value: PropertyListValue, to peer: String, timeout: Duration = .seconds(10)
  ) async throws {
    _ = try await core.ask(value, peer, expectsReply: false, timeout).get()
  }

  /// Asks all other peers that can be reached, at once.
  ///
  /// - Returns: the answer, or the error, of each.
  /// - Throws: `PeerError` when it cannot be found out who they are.
  public func broadcast(
    _ value: PropertyListValue, timeout: Duration = .seconds(10)
  ) async throws -> [String: Result<PropertyListValue, PeerError>] {
    let peers = try await Blocking.run { [self] in try activePeers() }
    let core = core
    return await withTaskGroup { group in
      for peer in peers where peer != name {
        group.addTask {
          (peer, await core.ask(value, peer, expectsReply: true, timeout))
        }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
  }
}

/// A request under way.
public final class PeerCall: Sendable {
  private struct Core { weak var core: PeerCore? }

  private let id: UInt64
  private let core: Mutex<Core>

  init(_ id: UInt64, of core: PeerCore) {
    self.id = id
    self.core = Mutex(Core(core: core))
  }

  /// Ends it as `cancelled`, unless it has ended; the peer's handler is told.
  public func cancel() { core.withLock { $0.core }?.cancel(id) }
}

// MARK: The calls of a session

extension PeerCore {
  /// Asks and blocks the calling thread.
  func ask(
    _ value: PropertyListValue, _ peer: String, expectsReply: Bool, _ timeout: Duration
  ) -> CallTable.Result {
    let deadline = ContinuousClock.now + timeout
    let waiter = PeerWaiter()
    do {
      let call = try outgoing(value, peer, expectsReply, timeout, looksAtClock: false) {
        waiter.end($0)
      }
      let link = link(peer)
      if link.add(.call(call)) { link.postOwn() }
      if let result = waiter.wait(until: deadline) { return result }
      // Whoever takes it out of the table ends it.
      guard let late = calls.remove(call.id) else { return waiter.wait() }
      tellCancelled(call.id, late)
      return .failure(timedOut(late))
    } catch {
      return .failure(PeerError(any: error, "ask \"\(peer)\"", peer: peer))
    }
  }

  /// Asks and suspends the task.
  func ask(
    _ value: PropertyListValue, _ peer: String, expectsReply: Bool, _ timeout: Duration
  ) async -> CallTable.Result {
    let started = Mutex<Started>(.not)
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let id = begin(value, peer, expectsReply, timeout) { continuation.resume(returning: $0) }
        let isCancelled = started.withLock { started in
          defer { started = .call(id) }
          return started == .cancelled
        }
        if isCancelled { cancel(id) }
      }
    } onCancel: {
      let id = started.withLock { started -> UInt64? in
        guard case .call(let id) = started else {
          started = .cancelled
          return nil
        }
        return id
      }
      if let id { cancel(id) }
    }
  }

  private enum Started: Equatable {
    case not
    case call(UInt64)
    /// Before it was begun.
    case cancelled
  }

  /// Asks without waiting.
  func begin(
    _ value: PropertyListValue, _ peer: String, _ expectsReply: Bool, _ timeout: Duration,
    _ end: @escaping @Sendable (CallTable.Result) -> Void
  ) -> UInt64 {
    do {
      let call = try outgoing(value, peer, expectsReply, timeout, looksAtClock: true, end)
      link(peer).addForLater(.call(call))
      return call.id
    } catch {
      end(.failure(PeerError(any: error, "ask \"\(peer)\"", peer: peer)))
      return 0
    }
  }

  func cancel(_ id: UInt64) {
    guard let call = calls.remove(id) else { return }
    call.end(.failure(.cancelled(call.peer)))
    tellCancelled(id, call)
  }

  private func outgoing(
    _ value: PropertyListValue, _ peer: String, _ expectsReply: Bool, _ timeout: Duration,
    looksAtClock: Bool, _ end: @escaping @Sendable (CallTable.Result) -> Void
  ) throws -> PeerLink.OutgoingCall {
    try PeerNames.check(peer)
    let replyTo = try openMailbox()
    let deadline = ContinuousClock.now + timeout
    let id = calls.insert(
      .init(
        peer: peer, replyTo: replyTo, deadline: looksAtClock ? deadline : nil, end: end,
        address: nil))
    return PeerLink.OutgoingCall(
      id: id, replyTo: replyTo, value: value, expectsReply: expectsReply, deadline: deadline,
      expiry: Expiry(after: timeout))
  }
}
