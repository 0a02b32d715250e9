public import Dispatch
import Synchronization
public import Wormhole
public import WormholePropertyLists
import WormholeSystem
import WormholeToolkit

/// This process as one of any number of named peers that share a container.
///
/// A session can send as soon as it is made. `activate` makes it the session that others reach
/// under its name: in one process at a time, as `Presence` proves; a stopped process is replaced.
///
/// A session has no mechanism of its own: requests go through mailboxes, guaranteed messages and
/// files through a `Queue` for each receiver, contexts are `Value`s, reachability is `Presence`.
///
/// It is closed when it is released, so objects that others keep do not hold it.
///
/// Every throwing function reports a failure as a `WormholeError`, one of the container with the
/// `peer`.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// phone.handleRequests { request in ["sold": request.value] }
/// try await phone.activate()
///
/// let till = try PeerSession("till", in: container)
/// print(try await till.request([7, 8], to: "phone", until: .now + .seconds(2)))
/// ```
public final class PeerSession: Sendable {
  /// The container that the peers share.
  public let container: SharedContainer
  /// This peer's name.
  public let name: String
  let outbox: Outbox
  let outgoingFiles: OutgoingFiles
  /// The requests under way, of both directions.
  let calls: CallEndpoint
  let incoming = IncomingRequests()
  let reachabilities = ReachabilityWatches()
  let callbacks = DispatchQueue(label: "wormhole.peer")
  let state = Mutex(State())

  /// Makes a session; nothing is read or written before it is used.
  ///
  /// - Parameters:
  ///   - name: any string, byte for byte, of at most 100 bytes once encoded like a value's name.
  ///   - container: the container that the peers share.
  /// - Throws: `WormholeError.Code.unsupportedValue` for a longer or an empty name.
  public init(_ name: String, in container: SharedContainer) throws {
    try PeerNames.check(name)
    self.container = container
    self.name = name
    outbox = Outbox(of: name, in: container)
    outgoingFiles = OutgoingFiles(outbox)
    let receiver = Receiver()
    calls = CallEndpoint(in: container) { call in
      receiver.session.withLock { $0.session }?.receive(call)
    }
    receiver.session.withLock { $0.session = self }
  }

  deinit { close() }

  private final class Receiver: Sendable {
    struct Reference { weak var session: PeerSession? }

    let session = Mutex(Reference())
  }
}

extension PeerSession {
  struct State {
    var registration: PresenceRegistration?
    /// The mailbox of the registration.
    var address: String?
    var observation: ObservationToken?
    /// Requests may arrive as soon as others see the registration, before it is noted here.
    var isActivating = false
    var replacedBy: WormholeError?
    var onReplacement: (@Sendable () -> Void)?
    /// By the bytes of the peers' names, of which two may be equal as strings.
    var links: [[UInt8]: PeerLink] = [:]
  }

  /// Becomes the session reached under this name, until `close`, until it is released, or until the
  /// process ends. Does nothing if it is active. Resumes sending files that an earlier process of
  /// this name began to send.
  ///
  /// - Parameter deadline: when to stop waiting for another process that is active under the name;
  ///   a stopped process is replaced. By default 10 seconds from now. A program that was started for
  ///   this peer does not wait: see `PeerLaunch`.
  /// - Throws: `WormholeError.Code.replaced`, its `holder` the process that is active instead; or an
  ///   error of the container.
  /// - Complexity: makes a mailbox, and enters a presence exclusively.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func activate(until deadline: ContinuousClock.Instant? = nil) throws {
    guard let address = try prepareActivation(until: deadline) else { return }
    try activated(
      Result {
        try presence.enterExclusively(
          content: PresenceMember.content(mailbox: address),
          until: Launcher.roleDeadline(deadline, for: name))
      }, address)
  }

  /// Becomes the session reached under this name; see the form without `async`. Cancelling the task
  /// ends the wait.
  public func activate(until deadline: ContinuousClock.Instant? = nil) async throws {
    let prepared = try await Blocking.run { try self.prepareActivation(until: deadline) }
    guard let address = prepared else { return }
    let result: Result<PresenceRegistration, any Error>
    do {
      result = .success(
        try await presence.enterExclusively(
          content: PresenceMember.content(mailbox: address),
          until: Launcher.roleDeadline(deadline, for: name)))
    } catch {
      result = .failure(error)
    }
    try await Blocking.run { [result] in try self.activated(result, address) }
  }

  private var presence: Presence { container.own.presence(PeerNames.presence(name)) }

  /// Makes the mailbox, before others learn its address; nil when the session is active.
  private func prepareActivation(until deadline: ContinuousClock.Instant?) throws -> String? {
    guard !isActive else { return nil }
    let address = try calls.open(until: deadline)
    state.withLock { $0.isActivating = true }
    return address
  }

  /// - Parameter address: the address that others see.
  private func activated(
    _ result: Result<PresenceRegistration, any Error>, _ address: String
  ) throws {
    // Only once the registration is noted: requests that arrived in between were refused.
    defer { state.withLock { $0.isActivating = false } }
    do {
      let registration = try result.get()
      let isOpen = state.withLock { state in
        // Under the lock, because `end` takes back what was noted before the mailbox was closed.
        guard calls.address == address else { return false }
        container.beginPublishing(as: name)
        (state.registration, state.address) = (registration, address)
        state.replacedBy = nil
        return true
      }
      guard isOpen else {
        registration.close()
        throw WormholeError.notActive(name)
      }
    } catch let error as WormholeError where error.code == .timedOut && error.holder != nil {
      // By another call at the same time.
      if isActive { return }
      throw WormholeError.replaced(name, error.holder)
    } catch {
      throw WormholeError(any: error, "be active as \"\(name)\"")
    }
    do {
      let observation = try presence.observe(on: callbacks) { [weak self] _ in
        self?.noteReplacement()
      }
      // If it has no registration, it was closed meanwhile, and the observation ends here.
      state.withLock { if $0.registration != nil { $0.observation = observation } }
    } catch {
      close()
      throw WormholeError(any: error, "be active as \"\(name)\"")
    }
    noteReplacement()
    // The remains of dead sessions harm no process, so no caller waits for their removal; if it
    // fails, the next session tries again.
    Blocking.queue().async { [container] in try? container.sweepMailboxes() }
    outgoingFiles.resume()
  }

  private func noteReplacement() {
    do {
      try state.withLock(\.registration)?.confirm()
    } catch let error as WormholeError where error.code == .leaseLost {
      leave(PresenceRegistration.close) { state in
        (state.registration, state.observation) = (nil, nil)
        state.replacedBy = .replaced(name, error.holder)
      }
      state.withLock(\.onReplacement)?()
    } catch {
      // Closed meanwhile; or the file system refuses, and the presence tries again.
      return
    }
  }

  /// Whether this session is the one reached under its name.
  ///
  /// A process that was stopped and replaced learns of that soon after it continues; to be certain
  /// at one moment, call `confirmActive`.
  public var isActive: Bool { state.withLock { $0.registration != nil } }

  /// Calls a short closure when another process, or none, is reached under the name from now on.
  package func onReplacement(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.onReplacement = body }
  }

  /// Checks whether this session is still the one reached under its name.
  ///
  /// - Throws: `WormholeError.Code.replaced`, its `holder` the process that is reached instead; or
  ///   `.notActive`.
  public func confirmActive() throws {
    noteReplacement()
    try state.withLock { state in
      guard state.registration == nil else { return }
      throw state.replacedBy ?? WormholeError.notActive(name)
    }
  }

  /// Stops being reached: this session's requests end as `cancelled`, requests to it as
  /// `unreachable`. Further calls have no effect; the session may be activated again.
  public func close() { end(PresenceRegistration.close) { $0.close() } }

  /// Stops being reached: for the other peers as if its process had died, here as `close`. For
  /// tests of those peers.
  package func abandon() { end(PresenceRegistration.abandon) { $0.abandon() } }

  func end(
    _ leave: (PresenceRegistration) -> () -> Void, _ close: (CallEndpoint) -> Void
  ) {
    self.leave(leave) { $0 = State() }
    close(calls)
    // An activation under way may have noted its registration before its mailbox was closed; a
    // later one has a new mailbox.
    self.leave(leave) { state in
      if state.address != calls.address { (state.registration, state.observation) = (nil, nil) }
    }
  }

  /// - Parameter change: removes the registration and its observation from the state, or does nothing.
  private func leave(
    _ leave: (PresenceRegistration) -> () -> Void, _ change: (inout State) -> Void
  ) {
    let old = state.withLock { state in
      let old = state
      change(&state)
      return state.registration == nil ? old : nil
    }
    old?.observation?.cancel()
    guard let registration = old?.registration else { return }
    container.endPublishing(as: name)
    leave(registration)()
  }
}

extension PeerSession {
  /// Replaces this peer's context for another: the latest wins. It outlives both processes.
  ///
  /// - Throws: `WormholeError.Code.unsupportedValue`, also for a context that is too large;
  ///   `.timedOut`, its `holder` the process in the way; `.noSpace`, or another error of the
  ///   container. Then the previous context is intact.
  /// - Complexity: as `Value.replace`: create, write, rename and unlink, and eight cheap calls.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func setContext(_ value: PropertyListValue, for peer: String) throws {
    try betweenPeers(setting(peer), peer) { try ownContext(peer).replace(with: value) }
  }

  /// Replaces this peer's context for another; see the form without `async`.
  public func setContext(_ value: PropertyListValue, for peer: String) async throws {
    try await betweenPeers(setting(peer), peer) {
      try await ownContext(peer).replace(with: value)
    }
  }

  /// Replaces this peer's context for another by a value of any type; see the dynamic form.
  ///
  /// - Throws: also `unsupportedValue` for a context that cannot be encoded as a property list.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func setContext<Context: Encodable>(encoding context: Context, for peer: String) throws {
    try setContext(encoded(context, peer), for: peer)
  }

  /// Replaces this peer's context for another by a value of any type; see the dynamic form.
  public func setContext<Context: Encodable & Sendable>(
    encoding context: Context, for peer: String
  ) async throws {
    try await setContext(encoded(context, peer), for: peer)
  }

  /// The last context that this peer set for another; nil if it never set one, or has removed it.
  ///
  /// - Throws: `WormholeError.Code.damaged`, or an error of the container.
  /// - Complexity: open, fstat, read, close; no lock.
  public func context(for peer: String) throws -> PropertyListValue? {
    try betweenPeers("read the context for \"\(peer)\"", peer) { try ownContext(peer).read() }
  }

  /// The last context that another peer set for this one; nil if it never did, or has removed it.
  ///
  /// - Throws: `WormholeError.Code.damaged`, or an error of the container.
  /// - Complexity: open, fstat, read, close; no lock.
  public func context(from peer: String) throws -> PropertyListValue? {
    try betweenPeers(reading(peer), peer) { try contextValue(from: peer).read() }
  }

  /// The last context that another peer set for this one, as a type; see the dynamic form.
  ///
  /// - Throws: also `unexpectedValue`.
  public func context<Context: Decodable>(
    from peer: String, as type: Context.Type
  ) throws -> Context? {
    try context(from: peer)?.decoded(as: type, reading(peer), from: peer)
  }

  /// Removes the context for a peer; its observers are not notified.
  ///
  /// - Throws: `WormholeError`, as `setContext`.
  public func removeContext(for peer: String) throws {
    _ = try betweenPeers("remove the context for \"\(peer)\"", peer) {
      try ownContext(peer).remove()
    }
  }

  // MARK: The values

  func contextValue(from peer: String) throws -> PlainValue {
    try PeerNames.check(peer)
    return container.own.value(PeerNames.context(from: peer, to: name))
  }

  func ownContext(_ peer: String) throws -> PlainValue {
    try PeerNames.check(peer)
    var value = container.own.value(PeerNames.context(from: name, to: peer))
    // Even if this process is several peers.
    value.peer = name
    return value
  }

  private func encoded(_ context: some Encodable, _ peer: String) throws -> PropertyListValue {
    try betweenPeers(setting(peer), peer) { try PropertyListValue(encoding: context) }
  }

  private func setting(_ peer: String) -> String { "set the context for \"\(peer)\"" }

  private func reading(_ peer: String) -> String { "read the context from \"\(peer)\"" }

  /// Calls a handler with the contexts that another peer sets: the current one, if it was not yet
  /// handed over under this session's name, and every later one; only the latest after a burst, and
  /// never an older one after a newer one.
  ///
  /// When the handler returns, the container notes which context it was, so a context is handed
  /// over once, even across restarts of this peer. If a process is killed before that, the next one
  /// gets it again. Of two that observe under one name, the first that looks gets it, or both do.
  ///
  /// - Parameters:
  ///   - peer: the peer whose contexts are observed.
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets the context; or an error: the context is damaged, or it could not be noted
  ///     as handed over, and is handed over again after a restart.
  /// - Returns: the observation; it ends when it is cancelled or released.
  /// - Throws: `WormholeError` when the container cannot be used any more.
  public func observeContext(
    from peer: String, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (Result<PropertyListValue, WormholeError>) -> Void
  ) throws -> ObservationToken {
    try offerContexts(from: peer, on: queue) { context in
      handler(context)
      return true
    }
  }

  /// Calls a handler like `observeContext`, and notes only a context for which it returns true as
  /// handed over: an observation that begins later gets the others again.
  package func offerContexts(
    from peer: String, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (Result<PropertyListValue, WormholeError>) -> Bool
  ) throws -> ObservationToken {
    let action = "observe the context from \"\(peer)\""
    return try betweenPeers(action, peer) {
      let seen = container.own.value(PeerNames.seen(from: peer, to: name))
      return try contextValue(from: peer).observe(startsWithCurrent: true, on: queue) { snapshot in
        do {
          guard let context = try snapshot.propertyList(), let version = snapshot.version?.text
          else { return }
          // Better handed over twice than never; the note is then written again.
          if (try? seen.read()?.stringValue) == version { return }
          // Only then, so that a process killed in between loses nothing.
          if handler(.success(context)) { try seen.replace(with: .string(version)) }
        } catch {
          _ = handler(.failure(WormholeError(any: error, action, peer: peer)))
        }
      }
    }
  }
}
