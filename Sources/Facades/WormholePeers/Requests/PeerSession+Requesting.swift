public import Dispatch
import Synchronization
import Wormhole
public import WormholePropertyLists
import WormholeSystem
import WormholeToolkit

extension PeerSession {
  /// Asks a peer, and waits for its answer.
  ///
  /// Ends in exactly one of: the reply; `failed`, `notHandled`, `notAnswered` or `unexpectedValue`
  /// by the peer's handler; `unreachable`, at once when no process answers under that name (and
  /// none can be launched), or when the peer ends before it answers; `timedOut`; `cancelled` with
  /// the session; `queueFull`, `tooLarge`, `unsupportedValue` or an error of the container when it
  /// cannot be sent. Requests to one peer arrive in the order in which they were made.
  ///
  /// - Parameters:
  ///   - value: the question.
  ///   - peer: the peer that is asked.
  ///   - deadline: when to give up, including the time to start the peer; by default in 10 seconds.
  /// - Complexity: connect and send, and a receive for the answer. More than 16 KiB, or a peer that
  ///   has fallen behind, takes a file. The first request to a peer also looks at its presence, and
  ///   watches it.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func request(
    _ value: PropertyListValue, to peer: String, until deadline: ContinuousClock.Instant? = nil
  ) throws -> PropertyListValue {
    try ask(value, of: peer, until: deadline).get()
  }

  /// Asks a peer; see the form without `async`. Cancelling the task ends the call for both sides.
  public func request(
    _ value: PropertyListValue, to peer: String, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> PropertyListValue {
    try await ask(value, of: peer, until: deadline).get()
  }

  /// Asks a peer with a value of one type, and gets one of another; see the dynamic form.
  ///
  /// - Throws: also `PeerError.Code.unsupportedValue` for a question that cannot be encoded, and
  ///   `.unexpectedValue` for an answer of a different type.
  public func request<Request: Encodable & Sendable, Reply: Decodable & Sendable>(
    _ value: Request, to peer: String, expecting: Reply.Type,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Reply {
    let action = "ask \"\(peer)\""
    let question = try await betweenPeers(action, peer) { try PropertyListValue(encoding: value) }
    return try await ask(question, of: peer, until: deadline).get()
      .decoded(as: Reply.self, action, from: peer)
  }

  /// Asks a peer without waiting; the peer gets the requests in the order of the calls.
  ///
  /// - Parameters:
  ///   - value: The question.
  ///   - peer: The name of the peer.
  ///   - expectsReply: false to learn only that a handler has the value: the result is then an
  ///     empty dictionary.
  ///   - deadline: When to give up waiting for the reply; by default 10 seconds from now.
  ///   - queue: where the completion is called; nil for a queue of the session.
  ///   - completion: called exactly once.
  /// - Returns: a handle to cancel the request.
  @discardableResult
  public func request(
    _ value: PropertyListValue, to peer: String, expectsReply: Bool = true,
    until deadline: ContinuousClock.Instant? = nil, on queue: DispatchQueue? = nil,
    completion: @escaping @Sendable (Result<PropertyListValue, PeerError>) -> Void
  ) -> PeerCall {
    let queue = queue ?? callbacks
    let id = begin(value, to: peer, expectsReply: expectsReply, until: deadline) { result in
      queue.async { completion(result) }
    }
    return PeerCall(id, of: self)
  }

  /// Asks a peer whose presence the caller has just listed, without listing it again.
  package func request(
    _ value: PropertyListValue, to peer: String, _ reachability: PeerReachability,
    expectsReply: Bool, until deadline: ContinuousClock.Instant, on queue: DispatchQueue,
    completion: @escaping @Sendable (Result<PropertyListValue, PeerError>) -> Void
  ) {
    _ = begin(
      value, to: peer, seen: reachability.member, expectsReply: expectsReply, until: deadline
    ) { result in queue.async { completion(result) } }
  }

  /// Ends the requests to a peer that have not ended, as `cancelled`; the peer's handlers learn of it.
  package func cancelCalls(to peer: String) {
    calls.endCalls(about: peer, as: .cancelled)
  }

  /// Gives a peer a value at once; returns when one of its handlers has it. No reply is expected.
  ///
  /// - Throws: as `request`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func send(
    _ value: PropertyListValue, to peer: String, until deadline: ContinuousClock.Instant? = nil
  ) throws {
    _ = try ask(value, of: peer, expectsReply: false, until: deadline).get()
  }

  /// Gives a peer a value at once; see the form without `async`.
  public func send(
    _ value: PropertyListValue, to peer: String, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    _ = try await ask(value, of: peer, expectsReply: false, until: deadline).get()
  }

  /// Asks all other peers that can be reached, at once.
  ///
  /// - Parameters:
  ///   - value: The question.
  ///   - deadline: When to give up waiting for their answers; by default 10 seconds from now.
  /// - Returns: the answer or the error of each peer, by name. All peers are asked, but of names
  ///   that are equal as strings, like "é" composed and decomposed, the dictionary holds one.
  /// - Throws: `PeerError` if the peers cannot be listed.
  public func broadcast(
    _ value: PropertyListValue, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> [String: Result<PropertyListValue, PeerError>] {
    let deadline = deadline ?? .now + Self.standardWait
    let peers = try await Blocking.run { [self] in try activePeers() }
    return await withTaskGroup { group in
      for peer in peers where !PeerNames.areSame(peer, name) {
        group.addTask { [self] in
          (peer, await ask(value, of: peer, until: deadline))
        }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
  }
}

/// A request under way.
///
/// ```swift
/// let till = try PeerSession("till", in: container)
/// let call = till.request([7, 8], to: "phone") { result in print(result) }
/// call.cancel()
/// ```
public final class PeerCall: Sendable {
  private let id: UInt64
  private weak let session: PeerSession?

  init(_ id: UInt64, of session: PeerSession) {
    self.id = id
    self.session = session
  }

  /// Ends it as `cancelled`, unless it has ended; the peer's handler learns of it.
  public func cancel() { session?.cancel(id) }
}

// MARK: The calls of a session

extension PeerSession {
  /// How long a caller waits by default.
  private static let standardWait: Duration = .seconds(10)

  private func ask(
    _ value: PropertyListValue, of peer: String, expectsReply: Bool = true,
    until deadline: ContinuousClock.Instant?
  ) -> PeerResult {
    let deadline = deadline ?? .now + Self.standardWait
    let answer = Awaited<PeerResult>()
    let id = begin(value, to: peer, expectsReply: expectsReply, until: deadline, blocks: true) {
      answer.settle($0)
    }
    if let result = answer.wait(until: deadline, blocking: calls.block) { return result }
    // Has no effect if it is just ending: its result is then that end.
    calls.end(id, as: .timedOut)
    return answer.wait()
  }

  private func ask(
    _ value: PropertyListValue, of peer: String, expectsReply: Bool = true,
    until deadline: ContinuousClock.Instant?
  ) async -> PeerResult {
    let (results, ended) = AsyncStream<PeerResult>.makeStream()
    let id = begin(value, to: peer, expectsReply: expectsReply, until: deadline) {
      ended.yield($0)
    }
    return await withTaskCancellationHandler {
      for await result in results { return result }
      // Cancelled, and so is the request.
      return .failure(.cancelled(peer))
    } onCancel: {
      cancel(id)
    }
  }

  /// Makes a request and posts it, after all earlier ones to its peer.
  ///
  /// - Parameters:
  ///   - seen: the process of the peer, if the caller has just looked.
  ///   - blocks: whether the caller waits for the answer on this thread, and watches the clock.
  ///   - end: called once.
  /// - Returns: the id of the call; none has it if the call has failed to begin.
  private func begin(
    _ value: PropertyListValue, to peer: String, seen: PresenceMember? = nil, expectsReply: Bool,
    until deadline: ContinuousClock.Instant?, blocks: Bool = false,
    _ end: @escaping @Sendable (PeerResult) -> Void
  ) -> UInt64 {
    let container = container
    do {
      try PeerNames.check(peer)
      let id = try calls.begin(
        PeerRequest.content(value, from: name, expectsReply: expectsReply), about: peer,
        until: deadline ?? .now + Self.standardWait, isTimedByCaller: blocks
      ) { end(PeerResult($0, peer, in: container)) }
      link(peer).add(id, seen, mayBlock: blocks)
      return id
    } catch {
      end(.failure(PeerError(any: error, "ask \"\(peer)\"", peer: peer)))
      return 0
    }
  }

  fileprivate func cancel(_ id: UInt64) { calls.end(id, as: .cancelled) }

  /// Links to peers that are not reached are dropped beyond this number.
  private static let maximumLinks = 1_000

  private func link(_ peer: String) -> PeerLink {
    let key = Array(peer.utf8)
    return state.withLock { state in
      if let link = state.links[key] { return link }
      if state.links.count >= Self.maximumLinks {
        state.links = state.links.filter { $0.value.isNeeded }
      }
      let link = PeerLink(to: peer, in: container, calls)
      state.links[key] = link
      return link
    }
  }
}

typealias PeerResult = Result<PropertyListValue, PeerError>

extension PeerResult {
  /// - Parameter container: where the peer would be reached: for a call that has timed out.
  fileprivate init(_ end: CallEnd, _ peer: String, in container: SharedContainer) {
    switch end {
    case .answered(.reply(let value)): self = .success(value)
    case .answered(.failure(let code, let reason, _)):
      // The codes that a peer may use; any other is just a failure.
      let codes: [PeerError.Code] = [
        .notHandled, .notAnswered, .unreachable, .queueFull, .unexpectedValue,
      ]
      let code = codes.first { $0.rawValue == code } ?? .failed
      self = .failure(.asking(peer, code, reason))
    case .timedOut:
      // The request is late even if this process cannot find out why.
      let reachability = try? PeerReachability.of(peer, in: container.limited(until: .now))
      self = .failure(.timedOut(peer, reachability))
    case .cancelled: self = .failure(.cancelled(peer))
    case .closed:
      self = .failure(.asking(peer, .cancelled, "the session was closed meanwhile"))
    case .died: self = .failure(.unreachable(peer, "it has ended"))
    case .failed(let error):
      self = .failure(PeerError(any: error, "ask \"\(peer)\"", peer: peer))
    }
  }
}
