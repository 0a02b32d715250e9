import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// What a session consists of: forgotten with it, so nothing that others keep holds it.
final class PeerCore: Sendable {
  private struct State {
    var registration: PresenceRegistration?
    var observation: Observation?
    /// Requests may come as soon as others see the registration, which is before it is noted here.
    var isActivating = false
    var replacedBy: PeerError?
    var links: [String: PeerLink] = [:]
  }

  let container: SharedContainer
  let name: String
  let calls: CallTable
  let incoming: IncomingRequests
  let reachabilities = ReachabilityWatches()
  private let state = Mutex(State())
  private let mailbox = Mutex<Mailbox?>(nil)
  let callbacks = Blocking.queue()

  /// Links to peers that are not reached are forgotten beyond this.
  private static let maximumLinks = 1_000

  init(_ container: SharedContainer, name: String) {
    self.container = container
    self.name = name
    incoming = IncomingRequests(container)
    let overdue = Overdue()
    calls = CallTable { overdue.end($0, $1) }
    overdue.core.withLock { $0.core = self }
  }

  deinit { invalidate() }

  // MARK: Being active

  var presence: Presence { container.own.presence(PeerNames.presence(name)) }

  var isActive: Bool { state.withLock { $0.registration != nil } }

  /// Makes the mailbox, before others learn its address.
  ///
  /// - Returns: the address; nil when the session is active.
  func prepareActivation() throws -> String? {
    guard !isActive else { return nil }
    let address = try openMailbox()
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
    guard mailbox.withLock({ $0?.address == address }) else {
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
      invalidate()
      throw PeerError(any: error, "be active as \"\(name)\"")
    }
    noteReplacement()
    sweepSoon()
  }

  // What dead sessions left is in nobody's way, and nobody's to wait for.
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
      // Left meanwhile; or the file system refuses, and presence tries again.
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
  func invalidate() {
    let old = state.withLock { state in
      defer { state = State() }
      return state
    }
    old.observation?.cancel()
    old.registration?.leave()
    let mailbox = mailbox.withLock { mailbox in
      defer { mailbox = nil }
      return mailbox
    }
    mailbox?.close()
    for (_, call) in calls.removeAll() { call.end(.failure(.invalidated(call.peer))) }
    incoming.cancelAll()
  }

  // MARK: The mailbox

  /// Where answers, and requests while the session is active, are to go.
  func openMailbox() throws -> String {
    try mailbox.withLock { mailbox in
      if let mailbox { return mailbox.address }
      let new = try Mailbox(in: container) { [weak self] in self?.receive($0) }
      mailbox = new
      return new.address
    }
  }

  private func receive(_ delivery: Mailbox.Delivery) {
    switch RequestMessage(delivery.value) {
    case .reply(let id, let value): calls.remove(id)?.end(.success(value))
    case .failure(let id, let failure):
      guard let call = calls.remove(id) else { return }
      call.end(.failure(.answered(call.peer, failure)))
    case .cancel(let id, let replyTo): incoming.cancel(.init(id: id, replyTo: replyTo))
    case .request(let call):
      reachabilities.heard(from: call.sender)
      if state.withLock({ $0.registration != nil || $0.isActivating }) {
        incoming.receive(call, delivery)
      } else {
        incoming.refuse(call, .init(.unreachable, "the session is not active any more"))
      }
    case nil: return
    }
  }

  // MARK: Calls

  func link(_ peer: String) -> PeerLink {
    state.withLock { state in
      if let link = state.links[peer] { return link }
      if state.links.count >= Self.maximumLinks {
        state.links = state.links.filter { $0.value.isNeeded }
      }
      let target = PeerTarget(peer, in: container, calls) { [weak self] in
        self?.mailbox.withLock { $0 }?.catchUp()
      }
      let link = PeerLink(target, from: name, calls)
      state.links[peer] = link
      return link
    }
  }

  /// Ends a call that was taken out of the table because nobody waits any more; its peer is told.
  func tellCancelled(_ id: UInt64, _ call: CallTable.Call) {
    guard let address = call.address else { return }
    link(call.peer).addForLater(.cancel(id: id, address: address, replyTo: call.replyTo))
  }

  func timedOut(_ call: CallTable.Call) -> PeerError {
    do {
      return .timedOut(call.peer, try PeerReachability.of(call.peer, in: container))
    } catch {
      // It is late all the same.
      return .timedOut(call.peer, nil)
    }
  }

  /// Ends calls whose deadline has passed.
  private final class Overdue: Sendable {
    struct Core { weak var core: PeerCore? }

    let core = Mutex(Core())

    func end(_ id: UInt64, _ call: CallTable.Call) {
      guard let core = core.withLock({ $0.core }) else { return }
      call.end(.failure(core.timedOut(call)))
      core.tellCancelled(id, call)
    }
  }
}
