public import Dispatch
import Synchronization
public import Wormhole
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
  /// - Throws: also `WormholeError.Code.unsupportedValue` for a question that cannot be encoded, and
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
    completion: @escaping @Sendable (Result<PropertyListValue, WormholeError>) -> Void
  ) -> PeerCall {
    let queue = queue ?? callbacks
    let id = begin(value, to: peer, expectsReply: expectsReply, until: deadline) { result in
      queue.async { completion(result) }
    }
    return PeerCall(id, calls)
  }

  /// Asks a peer whose presence the caller has just listed, without listing it again.
  package func request(
    _ value: PropertyListValue, to peer: String, _ reachability: PeerReachability,
    expectsReply: Bool, until deadline: ContinuousClock.Instant, on queue: DispatchQueue,
    completion: @escaping @Sendable (Result<PropertyListValue, WormholeError>) -> Void
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
  /// - Throws: `WormholeError` if the peers cannot be listed.
  public func broadcast(
    _ value: PropertyListValue, until deadline: ContinuousClock.Instant? = nil
  ) async throws -> [String: Result<PropertyListValue, WormholeError>] {
    let deadline = deadline ?? .now + Self.standardWait
    let peers = try await Blocking.run { [self] in try activePeers() }
    return await withTaskGroup { group in
      for peer in peers where !PeerNames.areSame(peer, name) {
        group.addTask { [self] in (peer, await ask(value, of: peer, until: deadline)) }
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
  private weak let calls: CallEndpoint?

  init(_ id: UInt64, _ calls: CallEndpoint) {
    self.id = id
    self.calls = calls
  }

  /// Ends it as `cancelled`, unless it has ended; the peer's handler learns of it.
  public func cancel() { calls?.end(id, as: .cancelled) }
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
      calls.end(id, as: .cancelled)
    }
  }

  /// Makes a request and posts it, after all earlier ones to its peer.
  ///
  /// - Parameters:
  ///   - seen: the process of the peer, if the caller has just looked.
  ///   - blocks: whether the caller waits for the answer on this thread.
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
        until: deadline ?? .now + Self.standardWait
      ) { end(PeerResult($0, peer, in: container)) }
      link(peer).add(id, seen, mayBlock: blocks)
      return id
    } catch {
      end(.failure(.asking(peer, failed: error)))
      return 0
    }
  }

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

/// The way from a session to one peer: it knows where the peer is reached, until the peer's
/// presence changes, and posts calls there in order.
///
/// A caller that finds no thread posting posts itself, which saves a hop to another thread.
final class PeerLink: Sendable {
  private struct State {
    /// The process that is reached; its mailbox is the peer's address.
    var target: PresenceMember?
    var observation: ObservationToken?
    /// The calls to be posted. With the peer's process, if the caller has just looked.
    var calls: ArraySlice<(id: UInt64, seen: PresenceMember?)> = []
    /// A thread posts, and looks for more before it stops.
    var isPosting = false
  }

  private let peer: String
  private let container: SharedContainer
  private let calls: CallEndpoint
  private let state = Mutex(State())
  /// One look after another, so that the later look has the newer result.
  private let looking = Mutex(())
  private let posting = Blocking.queue()
  private let watching = DispatchQueue(label: "wormhole.link")

  /// How long to wait for a mailbox that was removed while its owner lives: the owner remakes it.
  private static let pause: Duration = .milliseconds(20)

  init(to peer: String, in container: SharedContainer, _ calls: CallEndpoint) {
    self.peer = peer
    self.container = container
    self.calls = calls
  }

  /// Whether a call is to be posted, or the peer is reached.
  var isNeeded: Bool { state.withLock { $0.target != nil || $0.isPosting } }

  // MARK: In order

  /// Posts a call after all that were added before it: on another thread, or on this one if it may
  /// block and no other thread is posting.
  func add(_ id: UInt64, _ seen: PresenceMember?, mayBlock: Bool) {
    let mustPost = state.withLock { state in
      state.calls.append((id, seen))
      return !exchange(&state.isPosting, with: true)
    }
    guard mustPost else { return }
    // No thread was posting, so this call comes first. Its caller does not wait for calls that
    // others have added meanwhile.
    if !mayBlock || postNext() { posting.async { while self.postNext() {} } }
  }

  // One at a time, so the order of the calls is that of the files.
  /// - Returns: whether there is more; if not, no thread posts from now on.
  private func postNext() -> Bool {
    let (id, seen) = state.withLock { $0.calls.removeFirst() }
    do {
      try post(id, seen)
    } catch {
      calls.end(id, as: .failed(error))
    }
    return state.withLock { state in
      // Excludes: a call finds a thread posting, which has just seen an empty queue.
      state.isPosting = !state.calls.isEmpty
      // Otherwise the posted calls stay in memory.
      if !state.isPosting { state.calls = [] }
      return state.isPosting
    }
  }

  private func post(_ id: UInt64, _ seen: PresenceMember?) throws {
    var seen = seen
    // It may have ended before the second attempt; a caller that is blocked here looks at the clock
    // afterwards.
    while let deadline = calls.deadline(of: id), .now < deadline {
      let (process, mailbox) = try resolve(seen: seen.take(), until: deadline)
      switch try calls.post(id, to: mailbox, isThere: { target?.mailbox == mailbox }) {
      case .posted: return
      case .full:
        throw WormholeError.asking(
          peer, .queueFull, "too much waits for \(process) already",
          remedy: "wait until it has caught up; it may be stopped")
      case .gone:
        try look(until: deadline)
        if target?.mailbox == mailbox { WakeLatch().block(until: .now + Self.pause) }
      }
    }
  }

  // MARK: Where the peer is reached

  private var target: PresenceMember? { state.withLock(\.target) }

  /// Where the peer is reached; starts it where that is registered.
  ///
  /// - Parameter seen: its process, if the caller has just looked.
  /// - Throws: `WormholeError`: `unreachable`, or the error of starting it.
  private func resolve(
    seen: PresenceMember?, until deadline: ContinuousClock.Instant
  ) throws -> (process: String, mailbox: String) {
    if target == nil { try look(seen, until: deadline) }
    let container = container.limited(until: deadline)
    while true {
      if let target, let mailbox = target.mailbox { return (target.process, mailbox) }
      // The obstacle to starting a registered peer is thrown.
      if try !Launcher.launch(peer, for: .request, in: container, until: deadline) {
        let reachability = try PeerReachability.of(peer, in: container)
        guard reachability.isActive else {
          throw WormholeError.unreachable(peer, reachability.reason)
        }
      }
      guard ContinuousClock.now < deadline else { throw WormholeError.timedOut(peer, nil) }
      try look(until: deadline)
    }
  }

  /// Looks which process is active under the name; calls to an earlier process end.
  private func look(
    _ seen: PresenceMember? = nil, until deadline: ContinuousClock.Instant
  ) throws {
    let presence = container.limited(until: deadline).own.presence(PeerNames.presence(peer))
    let (old, new) = try looking.withLock { _ in
      let found = try seen ?? presence.members().active
      if found != nil, state.withLock({ $0.observation == nil }) { try observe(presence) }
      return (update(found), found)
    }
    guard let old, let mailbox = old.mailbox else { return }
    let reason = new.map { "\($0) has taken its place" } ?? "it has ended"
    let error = WormholeError.asking(
      peer, .unreachable, "\(old.process) did not answer before \(reason)",
      remedy: "it may have handled the request: ask again only if that does no harm")
    calls.endCalls(to: mailbox, as: .failed(error))
  }

  private func observe(_ presence: Presence) throws {
    // The first call is for a process that appeared or left before the watch.
    let observation = try presence.observe(startsWithCurrent: true, on: watching) {
      [weak self] _ in
      // The delivered state may be older than the result of another look, so look again. Callers
      // with their own deadlines wait for this look. A failure, perhaps for lack of descriptors, is
      // harmless: presence asks for another look at its next change.
      try? self?.look(until: .now)
    }
    state.withLock { $0.observation = observation }
  }

  /// - Returns: the process that is not reached any more.
  private func update(_ found: PresenceMember?) -> PresenceMember? {
    let (old, observation) = state.withLock { state -> (PresenceMember?, ObservationToken?) in
      guard state.target?.mailbox != found?.mailbox else { return (nil, nil) }
      let observation = found == nil ? state.observation.take() : nil
      return (exchange(&state.target, with: found), observation)
    }
    observation?.cancel()
    return old
  }
}
