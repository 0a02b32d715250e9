import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

extension PeerSession {
  struct State {
    var registration: PresenceRegistration?
    var observation: ObservationToken?
    /// Requests may arrive as soon as others see the registration, before it is noted here.
    var isActivating = false
    var replacedBy: PeerError?
    /// By the bytes of the peers' names, of which two may be equal as strings.
    var links: [[UInt8]: PeerLink] = [:]
  }

  /// Becomes the session that is reached under this name, until `close`, until it is released, or
  /// until the process ends. Does nothing if it is active. Resumes sending the files that an
  /// earlier process of this name has begun to send.
  ///
  /// - Parameter deadline: when to stop waiting for another process that is active under the name;
  ///   a stopped process is replaced. By default 10 seconds from now.
  /// - Throws: `PeerError`: `replaced`, its `holder` the process that is active instead; or an error of
  ///   the container.
  /// - Complexity: makes a mailbox, and enters a presence exclusively.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func activate(until deadline: ContinuousClock.Instant? = nil) throws {
    guard let address = try prepareActivation() else { return }
    try activated(
      Result {
        try presence.enterExclusively(
          content: PresenceMember.content(mailbox: address), until: deadline)
      }, address)
  }

  /// Becomes the session that is reached under this name; see the form without `async`. Cancelling the
  /// task ends the wait.
  public func activate(until deadline: ContinuousClock.Instant? = nil) async throws {
    guard let address = try await Blocking.run({ try self.prepareActivation() }) else { return }
    let result: Result<PresenceRegistration, any Error>
    do {
      result = .success(
        try await presence.enterExclusively(
          content: PresenceMember.content(mailbox: address), until: deadline))
    } catch {
      result = .failure(error)
    }
    try await Blocking.run { [result] in try self.activated(result, address) }
  }

  private var presence: Presence { container.own.presence(PeerNames.presence(name)) }

  /// Makes the mailbox, before others learn its address.
  ///
  /// - Returns: the address; nil when the session is active.
  private func prepareActivation() throws -> String? {
    guard !isActive else { return nil }
    let address = try calls.open()
    state.withLock { $0.isActivating = true }
    return address
  }

  /// - Parameter address: the address that others see.
  private func activated(
    _ result: Result<PresenceRegistration, any Error>, _ address: String
  ) throws {
    // Not before the registration is noted: requests that arrived in between were refused.
    defer { state.withLock { $0.isActivating = false } }
    do {
      let registration = try result.get()
      guard calls.address == address else {
        registration.close()
        throw PeerError.notActive(name)
      }
      state.withLock { state in
        state.registration = registration
        state.replacedBy = nil
      }
      container.beginPublishing(as: name)
    } catch let error as AppGroupError where error.code == .timedOut && error.holder != nil {
      // By another call at the same time.
      if isActive { return }
      throw PeerError.replaced(name, error.holder)
    } catch {
      throw PeerError(any: error, "be active as \"\(name)\"")
    }
    do {
      let observation = try presence.observe(on: callbacks) { [weak self] _ in
        self?.noteReplacement()
      }
      state.withLock { $0.observation = observation }
    } catch {
      close()
      throw PeerError(any: error, "be active as \"\(name)\"")
    }
    noteReplacement()
    let container = container
    // The remains of dead sessions harm no process, so no caller waits for their removal; if it
    // fails, the next session tries again.
    Blocking.queue().async { try? container.sweepMailboxes() }
    outgoingFiles.resume()
  }

  private func noteReplacement() {
    do {
      try state.withLock(\.registration)?.confirm()
    } catch let error as AppGroupError where error.code == .leaseLost {
      let (registration, observation) = state.withLock { state in
        defer {
          state.registration = nil
          state.observation = nil
          state.replacedBy = .replaced(name, error.holder)
        }
        return (state.registration, state.observation)
      }
      observation?.cancel()
      leave(registration, PresenceRegistration.close)
    } catch {
      // Closed meanwhile; or the file system refuses, and the presence tries again.
      return
    }
  }

  /// Whether this session is the one that is reached under its name.
  ///
  /// A process that was stopped and replaced learns it soon after it continues; to be certain at
  /// one moment, call `confirmActive`.
  public var isActive: Bool { state.withLock { $0.registration != nil } }

  /// Checks whether this session is still the one that is reached under its name.
  ///
  /// - Throws: `PeerError`: `replaced`, its `holder` the process that is reached instead; or `notActive`.
  public func confirmActive() throws {
    noteReplacement()
    try state.withLock { state in
      guard state.registration == nil else { return }
      throw state.replacedBy ?? PeerError.notActive(name)
    }
  }

  /// Stops being reached: requests of this session end as `cancelled`, requests to it as
  /// `unreachable`. Further calls have no effect; the session may be activated again.
  public func close() { end(PresenceRegistration.close) { $0.close() } }

  /// Stops being reached as if its process had died, for the other peers; here as `close`. For
  /// tests of those peers.
  package func abandon() { end(PresenceRegistration.abandon) { $0.abandon() } }

  private func end(
    _ leave: (PresenceRegistration) -> () -> Void, _ close: (CallEndpoint) -> Void
  ) {
    let old = state.withLock { state in
      defer { state = State() }
      return state
    }
    old.observation?.cancel()
    self.leave(old.registration, leave)
    close(calls)
  }

  private func leave(
    _ registration: PresenceRegistration?, _ leave: (PresenceRegistration) -> () -> Void
  ) {
    guard let registration else { return }
    container.endPublishing(as: name)
    leave(registration)()
  }
}
