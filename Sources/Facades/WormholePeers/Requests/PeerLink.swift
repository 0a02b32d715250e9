import Dispatch
import Synchronization
import Wormhole
import WormholeSystem
import WormholeToolkit

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
        throw PeerError.asking(
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
  /// - Throws: `PeerError`: `unreachable`, or the error of starting it.
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
          throw PeerError.unreachable(peer, reachability.reason)
        }
      }
      guard ContinuousClock.now < deadline else { throw PeerError.timedOut(peer, nil) }
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
    let error = PeerError.asking(
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
