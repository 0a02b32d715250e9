import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// The parts of a session. It is released with the session, so nothing that others keep holds it.
final class PeerCore: Sendable {
  private struct State {
    var registration: PresenceRegistration?
    var observation: Observation?
    /// Requests may come as soon as others see the registration, which is before it is noted here.
    var isActivating = false
    var replacedBy: PeerError?
    /// By the bytes of the peers' names, of which two may be equal as strings.
    var links: [[UInt8]: PeerLink] = [:]
  }

  let container: SharedContainer
  let name: String
  let calls: CallEndpoint
  let incoming = IncomingRequests()
  let reachabilities = ReachabilityWatches()
  private let state = Mutex(State())
  let callbacks = Blocking.queue()

  /// Links to peers that are not reached are dropped beyond this number.
  private static let maximumLinks = 1_000

  init(_ name: String, in container: SharedContainer) {
    self.container = container
    self.name = name
    let receiver = Receiver()
    calls = CallEndpoint(in: container) { call, delivery in
      receiver.core.withLock { $0.core }?.receive(call, delivery)
    }
    receiver.core.withLock { $0.core = self }
  }

  deinit { close() }

  // MARK: Being active

  var presence: Presence { container.own.presence(PeerNames.presence(name)) }

  var isActive: Bool { state.withLock { $0.registration != nil } }

  /// Makes the mailbox, before others learn its address.
  ///
  /// - Returns: the address; nil when the session is active.
  func prepareActivation() throws -> String? {
    guard !isActive else { return nil }
    let address = try calls.open()
    state.withLock { $0.isActivating = true }
    return address
  }

  /// - Parameter address: as it is known to others.
  func activated(
    _ result: Result<PresenceRegistration, any Error>, _ address: String
  ) throws {
    // Not before the registration is noted: requests that came in between were refused.
    defer { state.withLock { $0.isActivating = false } }
    let registration: PresenceRegistration
    do {
      registration = try result.get()
    } catch let error as AppGroupError where error.code == .timedOut && error.holder != nil {
      // By another call at the same time.
      if isActive { return }
      throw PeerError.replaced(name, error.holder)
    } catch {
      throw PeerError(any: error, "be active as \"\(name)\"")
    }
    guard calls.address == address else {
      registration.leave()
      throw PeerError.notActive(name)
    }
    state.withLock { state in
      state.registration = registration
      state.replacedBy = nil
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
    sweepSoon()
  }

  // The remains of dead sessions are in no one's way, so no caller waits for their removal.
  private func sweepSoon() {
    let container = container
    Blocking.queue().async {
      do {
        try container.sweepMailboxes()
      } catch {
        // The next one tries again.
        return
      }
    }
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
      registration?.leave()
    } catch {
      // Closed meanwhile; or the file system refuses, and presence tries again.
      return
    }
  }

  /// - Throws: `notActive` or `replaced`.
  func confirmActive() throws {
    noteReplacement()
    try state.withLock { state in
      guard state.registration == nil else { return }
      throw state.replacedBy ?? PeerError.notActive(name)
    }
  }

  /// Ends everything that is under way.
  func close() {
    let old = state.withLock { state in
      defer { state = State() }
      return state
    }
    old.observation?.cancel()
    old.registration?.leave()
    calls.close()
  }

  // MARK: Calls

  private func receive(_ call: IncomingCall, _ delivery: Mailbox.Delivery) {
    guard let request = PeerRequest(call) else { return }
    reachabilities.heard(from: request.sender)
    guard state.withLock({ $0.registration != nil || $0.isActivating }) else {
      let code = PeerError.Code.unreachable.rawValue
      return call.refuse(code: code, "the session is not active any more")
    }
    incoming.receive(request, delivery)
  }

  func link(_ peer: String) -> PeerLink {
    let key = Array(peer.utf8)
    return state.withLock { state in
      if let link = state.links[key] { return link }
      if state.links.count >= Self.maximumLinks {
        state.links = state.links.filter { $0.value.isNeeded }
      }
      let link = PeerLink(PeerTarget(peer, in: container, calls), from: name, calls)
      state.links[key] = link
      return link
    }
  }

  private final class Receiver: Sendable {
    struct Core { weak var core: PeerCore? }

    let core = Mutex(Core())
  }
}
