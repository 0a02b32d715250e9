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
  private struct Target: Sendable {
    let member: PresenceMember
    let outlet: MailboxSender
  }

  private struct State {
    var target: Target?
    var observation: ObservationToken?
  }

  private struct Outbox {
    var calls: ArraySlice<(id: UInt64, question: Question)> = []
    /// A thread posts, and looks for more before it stops.
    var isPosting = false
  }

  private let peer: String
  private let name: String
  private let container: SharedContainer
  private let calls: CallEndpoint
  private let state = Mutex(State())
  private let outbox = Mutex(Outbox())
  /// One look after another, so that the later look has the newer result.
  private let looking = Mutex(())
  private let posting = Blocking.queue()
  private let watching = DispatchQueue(label: "wormhole.link")

  /// How long to wait for a mailbox that was removed while its owner lives: the owner remakes it.
  private static let pause: Duration = .milliseconds(20)

  /// - Parameter name: the name of the session that makes these calls.
  init(to peer: String, in container: SharedContainer, from name: String, _ calls: CallEndpoint) {
    self.peer = peer
    self.container = container
    self.name = name
    self.calls = calls
  }

  /// Whether a call is to be posted, or the peer is reached.
  var isNeeded: Bool { target != nil || outbox.withLock(\.isPosting) }

  // MARK: In order

  /// Posts a call after all that were added before it: on another thread, or on this one if it may
  /// block and no other thread is posting.
  func add(_ id: UInt64, _ question: Question, mayBlock: Bool) {
    let mustPost = outbox.withLock { outbox in
      outbox.calls.append((id, question))
      defer { outbox.isPosting = true }
      return !outbox.isPosting
    }
    guard mustPost else { return }
    // No thread was posting, so this call comes first. Its caller does not wait for calls that
    // others have added meanwhile.
    if !mayBlock || postNext() { posting.async { while self.postNext() {} } }
  }

  // One at a time, so the order of the calls is that of the files.
  /// - Returns: whether there is more; if not, no thread posts from now on.
  private func postNext() -> Bool {
    let (id, question) = outbox.withLock { $0.calls.removeFirst() }
    do {
      try post(id, question)
    } catch {
      calls.end(id, as: .failed(error))
    }
    return outbox.withLock { outbox in
      // Excludes: a call finds a thread posting, which has just seen an empty queue.
      outbox.isPosting = !outbox.calls.isEmpty
      // Otherwise the posted calls stay in memory.
      if !outbox.isPosting { outbox.calls = [] }
      return outbox.isPosting
    }
  }

  private func post(_ id: UInt64, _ question: Question) throws {
    // It may have ended before the second attempt.
    var seen = question.seen
    // A caller that is blocked here looks at the clock afterwards.
    while calls.isUnderWay(id), ContinuousClock.now < question.deadline {
      let target = try resolve(seen: seen.take(), until: question.deadline)
      let outcome = try calls.post(
        id, question.propertyList(from: name),
        expires: Expiry(after: ContinuousClock.now.duration(to: question.deadline)),
        to: target.outlet, until: question.deadline
      ) { isCurrent(target) }
      switch outcome {
      case .posted: return
      case .full:
        throw PeerError.asking(
          peer, .queueFull, "too much waits for \(target.member.process) already",
          remedy: "wait until it has caught up; it may be stopped")
      case .gone:
        try look(until: question.deadline)
        if isCurrent(target) { WakeLatch().block(until: .now + Self.pause) }
      }
    }
  }

  // MARK: Where the peer is reached

  private var target: Target? { state.withLock(\.target) }

  private func isCurrent(_ known: Target) -> Bool { target?.outlet === known.outlet }

  /// Where the peer is reached; starts it where that is registered.
  ///
  /// - Parameter seen: its process, if the caller has just looked.
  /// - Throws: `PeerError`: `unreachable`, or the error of starting it.
  private func resolve(
    seen: PresenceMember?, until deadline: ContinuousClock.Instant
  ) throws -> Target {
    if let target { return target }
    try look(seen, until: deadline)
    let container = container.limited(until: deadline)
    while true {
      if let target { return target }
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
    let ended = try looking.withLock { _ -> (Target, String)? in
      let found = try seen ?? presence.members().active
      if found != nil, state.withLock({ $0.observation == nil }) { try observe(presence) }
      return update(found)
    }
    guard let (old, reason) = ended else { return }
    let error = PeerError.asking(
      peer, .unreachable, "\(old.member.process) did not answer before \(reason)",
      remedy: "it may have handled the request: ask again only if that does no harm")
    calls.endCalls(to: old.outlet, as: .failed(error))
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

  /// - Returns: the process that is gone, and why.
  private func update(_ found: PresenceMember?) -> (Target, String)? {
    let outlet = found?.mailbox.flatMap { MailboxSender(in: container, to: $0) }
    let (old, observation) = state.withLock { state -> (Target?, ObservationToken?) in
      let old = state.target
      guard let found, let outlet else {
        let observation = state.observation
        state = State()
        return (old, observation)
      }
      guard old?.outlet.address != outlet.address else { return (nil, nil) }
      state.target = Target(member: found, outlet: outlet)
      return (old, nil)
    }
    observation?.cancel()
    guard let old else { return nil }
    let reason = found.map { "\($0) has taken its place" } ?? "it has ended"
    return (old, reason)
  }
}
