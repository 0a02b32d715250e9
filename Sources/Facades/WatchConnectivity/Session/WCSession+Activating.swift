import Synchronization
import Wormhole
import WormholePeers
import WormholeSystem

extension WCSession {
  /// Begins the session; see `activate()`.
  func beginSession() {
    let setup: SessionSetup
    do {
      guard !state.withLock({ $0.hasEnded }) else {
        throw WCError(
          .sessionNotActivated, reason: "This session was ended; ask for WCSession.default again.")
      }
      setup = try configured()
    } catch {
      return queue.async {
        self.notify { $0.session(self, activationDidCompleteWith: .notActivated, error: error) }
      }
    }
    guard delegate != nil else {
      return Self.complain(
        WCError(.sessionMissingDelegate, reason: "Set the session's delegate before activate()."))
    }
    switch state.withLock({ $0.activate() }) {
    case .begin: begin { await self.open(setup) }
    case .confirm:
      queue.async {
        self.notify { $0.session(self, activationDidCompleteWith: .activated, error: nil) }
      }
    case .wait: break
    }
  }

  private func open(_ setup: SessionSetup) async {
    // For all three roles: another process may have only one of them.
    let deadline = ContinuousClock.now + SessionSetup.patience
    do {
      try await setup.peer.activate(until: deadline)
      try await Blocking.run {
        // No link is current, so no delegate has a file. An obstacle that another member of the
        // container left does not keep this side from its peers.
        Diagnostics.reporting { try Inbox(setup).clear() }
        if setup.role == .phone { Diagnostics.reporting { try WatchDirectory.sweep(setup) } }
      }
      let link = try await SessionLink(self, setup, until: deadline)
      queue.async { self.begin(link) }
    } catch {
      let error = WCError(error, of: .activation)
      queue.async {
        // The activation may have begun: no peer may then find this side reachable.
        setup.peer.close()
        self.state.withLock { $0.isActivating = false }
        self.notify { $0.session(self, activationDidCompleteWith: .notActivated, error: error) }
      }
    }
  }

  private func begin(_ link: SessionLink) {
    state.withLock {
      $0.isActivating = false
      $0.activation = .activated
      $0.link = link
    }
    notifyObservers()
    notify { $0.session(self, activationDidCompleteWith: .activated, error: nil) }
    link.start()
  }

  // MARK: Another watch

  /// The phone's active watch differs from the link's; on the session's queue.
  func change(from link: SessionLink) {
    guard change(link, onlyActivated: true, { $0.activation = .inactive }) else { return }
    if let counterpart = link.counterpart { link.setup.peer.cancelCalls(to: counterpart) }
    notifyObservers()
    notify { $0.sessionDidBecomeInactive(self) }
    begin {
      await link.drain()
      self.queue.async { self.deactivate(link) }
    }
  }

  private func deactivate(_ link: SessionLink) {
    link.end()
    // It was lost meanwhile, and the session may have another one.
    guard state.withLock({ $0.link === link }) else { return }
    link.setup.peer.close()
    let activatesAgain = state.withLock { state in
      (state.activation, state.link) = (.notActivated, nil)
      defer { state.activatesAgain = false }
      return state.activatesAgain
    }
    notifyObservers()
    notify { $0.sessionDidDeactivate(self) }
    if activatesAgain { activate() }
  }

  /// The phone has its first watch, or has lost its last one: nothing is under way with another, so
  /// the session stays activated.
  func exchange(_ link: SessionLink) {
    link.end()
    begin {
      do {
        let next = try await SessionLink(self, link.setup)
        self.queue.async {
          guard self.change(link, onlyActivated: true, { $0.link = next }) else {
            return next.end()
          }
          next.follow(link)
          next.start()
        }
      } catch {
        self.queue.async { self.lose(link, error) }
      }
    }
  }

  /// This process was stopped and another one is now this side, or no link to the next counterpart
  /// could be opened. On the session's queue.
  func lose(_ link: SessionLink, _ error: any Error) {
    let isLost = change(link) { ($0.activation, $0.link) = (.notActivated, nil) }
    guard isLost else { return }
    link.end()
    link.setup.peer.close()
    let error = WCError(error, of: .activation)
    notifyObservers()
    notify { $0.session(self, activationDidCompleteWith: .notActivated, error: error) }
  }

  /// Changes the state, unless the session already has another link.
  private func change(
    _ link: SessionLink, onlyActivated: Bool = false, _ change: (inout State) -> Void
  ) -> Bool {
    state.withLock { state in
      guard state.link === link, !onlyActivated || state.activation == .activated else {
        return false
      }
      change(&state)
      return true
    }
  }
}

extension WCSession.State {
  enum ActivationStep { case begin, confirm, wait }

  fileprivate mutating func activate() -> ActivationStep {
    switch activation {
    case .activated: return .confirm
    case .inactive:
      activatesAgain = true
      return .wait
    case .notActivated:
      guard !isActivating else { return .wait }
      isActivating = true
      return .begin
    }
  }
}

extension WCSession {
  /// The state of a session.
  struct State {
    var delegate = DelegateReference(nil)
    var activation = WCSessionActivationState.notActivated
    /// `activate()` was called and has not completed.
    var isActivating = false
    /// `activate()` was called on an inactive session: it takes effect as soon as possible.
    var activatesAgain = false
    var link: SessionLink?
    /// The work under way that changes the link, by number.
    var works: [Int: Task<Void, Never>] = [:]
    var nextWork = 0
    /// The session was ended permanently, and another one replaces it.
    var hasEnded = false
  }

  /// A delegate is any object, which Swift cannot know to be safe on this queue.
  // It is only ever called on the session's serial queue, as its documentation says: code written
  // for Apple's framework relies on that, and is not Sendable. The reference itself is never changed.
  struct DelegateReference: @unchecked Sendable {
    private(set) weak var object: (any WCSessionDelegate)?
    init(_ object: (any WCSessionDelegate)?) { self.object = object }
  }
}
