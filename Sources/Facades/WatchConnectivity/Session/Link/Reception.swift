import Synchronization
import Wormhole
import WormholePeers
import WormholeSystem

/// Takes deliveries out of a queue one by one, and hands each over on the session's queue.
///
/// A delivery that cannot be handed over now (from a watch that is not active, or without a
/// delegate) stays taken and unacknowledged: the next reception gets it again, in its place.
final class Reception<Delivered: PeerDelivery>: Sendable {
  typealias Receiver = PeerReceiver<Delivered>
  typealias Opening = @Sendable (_ deadline: ContinuousClock.Instant?) async throws -> Receiver

  private struct State {
    var receiver: Receiver
    /// Nil before the start.
    weak var link: SessionLink?
    var isHandingOver = false
    /// Whether deliveries were left until another watch is active.
    var hasForeign = false
    /// Whether deliveries were left until there is a delegate: all that follow are then left, too,
    /// so that none overtakes.
    var hasUndelegated = false
    var isRestarting = false
    /// Whether the reason was reported since it last received.
    var isReported = false
    var hasEnded = false
  }

  private let state: Mutex<State>
  private let session: WCSession
  private let open: Opening
  private let deliver: @Sendable (SessionLink, Delivered) -> HandOver

  /// - Parameters:
  ///   - deadline: when to stop waiting for another receiver, now.
  ///   - open: becomes the receiver.
  ///   - deliver: hands a delivery over, on the session's queue.
  init(
    _ session: WCSession, until deadline: ContinuousClock.Instant? = nil,
    _ open: @escaping Opening,
    deliver: @escaping @Sendable (SessionLink, Delivered) -> HandOver
  ) async throws {
    self.session = session
    self.open = open
    self.deliver = deliver
    state = Mutex(State(receiver: try await open(deadline)))
  }

  /// Begins to hand over; a link that has stopped being the receiver is lost.
  func start(_ link: SessionLink) {
    let receiver = state.withLock { state in
      state.link = link
      return state.receiver
    }
    start(receiver)
  }

  private func start(_ receiver: Receiver) {
    receiver.offer(
      on: session.queue, failure: { [weak self] in self?.recover(from: $0) },
      { [weak self] in self?.hand($0) ?? .left })
  }

  /// Hands over all waiting deliveries. Stops even if they do not end, because their sender keeps
  /// sending: the rest waits until this watch is active again.
  func drain() async {
    let receiver = state.withLock(\.receiver)
    let deadline = ContinuousClock.now + .seconds(5)
    while .now < deadline, !Task.isCancelled {
      switch await session.onQueue({ _ in receiver.offerNext(self.hand) }) {
      case true?: continue
      case false?: return
      // An error means that it is cancelled, which ends the loop.
      case nil: try? await Task.sleep(for: ChangeMonitor.pollInterval)
      }
    }
  }

  /// Begins again with the deliveries that were left because there was no delegate; on the queue.
  func restart() {
    if state.withLock(\.hasUndelegated) { restart(after: .zero) }
  }

  private func restart(after pause: Duration) {
    let last = state.withLock { state -> Receiver? in
      guard !state.isRestarting, !state.hasEnded else { return nil }
      state.isRestarting = true
      return state.receiver
    }
    guard let last else { return }
    Task {
      last.close()
      do {
        try await Task.sleep(for: pause)
        let receiver = try await open(nil)
        let hasEnded = state.withLock {
          $0.receiver = receiver
          $0.hasForeign = false
          $0.hasUndelegated = false
          $0.isRestarting = false
          $0.isReported = false
          return $0.hasEnded
        }
        if hasEnded { receiver.close() } else { start(receiver) }
      } catch {
        state.withLock { $0.isRestarting = false }
        recover(from: WormholeError(any: error, "receive"))
      }
    }
  }

  /// Ends it; deliveries that were not handed over go to the next reception.
  func end() {
    let receiver = state.withLock { state in
      state.hasEnded = true
      return state.receiver
    }
    receiver.close()
  }

  /// Whether a delivery that was not handed over is waiting.
  func isPending() throws -> Bool {
    let (receiver, isPending, hasForeign) = state.withLock { state in
      (state.receiver, state.hasUndelegated || state.isHandingOver, state.hasForeign)
    }
    // Deliveries left for another watch keep the queue from ever being idle.
    return try isPending || !receiver.isIdle(countsTaken: !hasForeign)
  }

  /// A replaced session learns of it. After any other error it receives again, perhaps in the next
  /// container: if no process has replaced it, the queue was removed.
  private func recover(from error: WormholeError) {
    let isLost = error.code == .replaced && error.holder != nil || error.code == .notActive
    guard !isLost else { return lose(error) }
    let wasReported = state.withLock { exchange(&$0.isReported, with: true) }
    if !wasReported { Diagnostics.report(error) }
    restart(after: .seconds(1))
  }

  private func lose(_ error: any Error) {
    guard let link = state.withLock({ $0.link }) else { return }
    session.queue.async { [session] in session.lose(link, error) }
  }

  /// On the queue: a delegate that is set afterwards finds the outcome noted.
  private func hand(_ delivered: Delivered) -> Receiver.Outcome {
    let (waits, link) = state.withLock { state in
      state.isHandingOver = true
      return (state.hasUndelegated, state.link)
    }
    session.notifyObservers()
    let outcome =
      waits ? .leftForDelegate : link.map { deliver($0, delivered) } ?? .leftForAnotherWatch
    state.withLock {
      $0.isHandingOver = false
      if case .leftForAnotherWatch = outcome { $0.hasForeign = true }
      if case .leftForDelegate = outcome { $0.hasUndelegated = true }
    }
    // After this delivery has ended.
    session.queue.async { [session] in session.notifyObservers() }
    return switch outcome {
    case .ended(let failure): .ended(failure: failure)
    case .delayed(let error): .delayed(error)
    case .leftForAnotherWatch, .leftForDelegate: .left
    }
  }
}

/// The outcome of handing over a delivery.
enum HandOver: Sendable {
  case ended(failure: String?)
  /// It could not be put where the delegate would get it, perhaps because space is short.
  case delayed(any Error)
  case leftForAnotherWatch
  case leftForDelegate
}
