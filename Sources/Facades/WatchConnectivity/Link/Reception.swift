import Dispatch
import Synchronization
import Wormhole
import WormholePeers
import WormholeSystem

/// Takes one delivery after the other out of a queue, and hands it over on the session's queue.
///
/// The next is taken when the previous one was handed over, so that only one is in memory. A
/// delivery that cannot be handed over now (from a watch that is not active, or without a delegate)
/// is left taken and unacknowledged: the next reception gets it again, in its place.
final class Reception<Delivered: PeerDelivery>: Sendable {
  typealias Receiver = PeerReceiver<Delivered>

  private struct State {
    var receiver: Receiver
    /// Nil before the start.
    weak var link: SessionLink?
    var task: Task<Void, Never>?
    var isHandingOver = false
    /// Whether deliveries were left for the time when another watch is active.
    var hasForeign = false
    /// Whether deliveries were left until there is a delegate: then all that follow are left, too,
    /// so that none overtakes.
    var hasUndelegated = false
    var isRestarting = false
    var hasEnded = false
  }

  /// Between a failure and the next attempt.
  private static var pause: Duration { .seconds(1) }

  private let state: Mutex<State>
  private let session: WCSession
  private let open: @Sendable () async throws -> Receiver
  private let deliver: @Sendable (SessionLink, Delivered) -> HandOver

  /// - Parameters:
  ///   - open: becomes the receiver.
  ///   - deliver: hands a delivery over, on the session's queue, and ends it, unless it has to be left.
  init(
    _ session: WCSession, _ open: @escaping @Sendable () async throws -> Receiver,
    deliver: @escaping @Sendable (SessionLink, Delivered) -> HandOver
  ) async throws {
    self.session = session
    self.open = open
    self.deliver = deliver
    state = Mutex(State(receiver: try await open()))
  }

  /// Begins to hand over; a link that has stopped being the receiver is lost.
  func start(_ link: SessionLink) {
    state.withLock { $0.link = link }
    start()
  }

  private func start() {
    state.withLock { state in
      guard !state.hasEnded else { return }
      let receiver = state.receiver
      state.task = Task { await self.run(receiver) }
    }
  }

  /// Hands over all waiting deliveries, and stops; also when they do not end, because their sender goes
  /// on sending.
  func drain() async {
    let receiver = await stop()
    let deadline = ContinuousClock.now + .seconds(5)
    do {
      // The rest waits until this watch is active again.
      while .now < deadline, let entry = try await receiver.next(until: .now) {
        switch await hand(entry) {
        case .delayed: return
        case .unsettled(let settle): try await self.settle(settle, until: deadline)
        case .done, .leftForAnotherWatch, .leftForDelegate: continue
        }
      }
    } catch {
      Diagnostics.report(error)
    }
  }

  /// Begins again with the deliveries that were left because there was no delegate; on the queue.
  func restart() {
    let mustRestart = state.withLock { state in
      guard state.hasUndelegated, !state.isRestarting, !state.hasEnded else { return false }
      state.isRestarting = true
      return true
    }
    guard mustRestart else { return }
    Task {
      await stop().close()
      do {
        let receiver = try await open()
        let hasEnded = state.withLock {
          $0.receiver = receiver
          $0.hasForeign = false
          $0.hasUndelegated = false
          $0.isRestarting = false
          return $0.hasEnded
        }
        if hasEnded { receiver.close() } else { start() }
      } catch {
        lose(error)
      }
    }
  }

  /// Ends it; deliveries that were not handed over go to the next reception.
  func end() {
    let (receiver, task) = state.withLock { state in
      state.hasEnded = true
      return (state.receiver, state.task)
    }
    task?.cancel()
    receiver.close()
  }

  /// Waits until its task has ended.
  func ended() async { await state.withLock(\.task)?.value }

  /// Whether a delivery waits that was not handed over.
  func isPending() throws -> Bool {
    let (receiver, isPending, hasForeign) = state.withLock { state in
      (state.receiver, state.hasUndelegated || state.isHandingOver, state.hasForeign)
    }
    // Deliveries that were left for another watch keep the queue from ever being idle.
    return try isPending || !receiver.isIdle(countsTaken: !hasForeign)
  }

  private func stop() async -> Receiver {
    let (receiver, task) = state.withLock { ($0.receiver, $0.task) }
    task?.cancel()
    await task?.value
    return receiver
  }

  private func run(_ receiver: Receiver) async {
    while !Task.isCancelled {
      do {
        // Waking once an hour in vain costs next to nothing.
        guard let entry = try await receiver.next(until: .now + .seconds(3_600)) else { continue }
        var isHanded = false
        while !isHanded {
          isHanded = true
          switch await hand(entry) {
          case .delayed:
            isHanded = false
            try await Task.sleep(for: Self.pause)
          case .unsettled(let settle): try await self.settle(settle)
          case .done, .leftForAnotherWatch, .leftForDelegate: continue
          }
        }
      } catch {
        guard await mayContinue(after: error) else { return }
      }
    }
  }

  /// Ends a delivery that was handed over, as soon as that is possible: otherwise its sender would wait for
  /// ever, and the next reception get it again.
  private func settle(
    _ settle: @escaping @Sendable () throws -> Void, until deadline: ContinuousClock.Instant? = nil
  ) async throws {
    while deadline.map({ .now < $0 }) ?? true {
      try await Task.sleep(for: Self.pause)
      do {
        return try await Blocking.run(settle)
      } catch  where PeerError.mayPass(error) {
        continue
      }
    }
  }

  /// A lack of space or of descriptors only delays; a session that was replaced learns of it.
  private func mayContinue(after error: any Error) async -> Bool {
    if Task.isCancelled || state.withLock({ $0.hasEnded }) { return false }
    if let error = error as? PeerError, [.replaced, .notActive].contains(error.code) {
      lose(error)
      return false
    }
    Diagnostics.report(error)
    do {
      try await Task.sleep(for: Self.pause)
      return true
    } catch {
      // Cancelled, which ends it.
      return false
    }
  }

  private func lose(_ error: any Error) {
    guard let link = state.withLock({ $0.link }) else { return }
    session.queue.async { [session] in session.lose(link, error) }
  }

  private func hand(_ entry: Delivered) async -> HandOver {
    state.withLock { $0.isHandingOver = true }
    return await withCheckedContinuation { continuation in
      session.queue.async { continuation.resume(returning: self.handNow(entry)) }
    }
  }

  // The outcome is noted on the queue: a delegate that is set afterwards finds it.
  private func handNow(_ entry: Delivered) -> HandOver {
    session.notifyObservers()
    defer { session.notifyObservers() }
    let (waits, link) = state.withLock { ($0.hasUndelegated, $0.link) }
    let outcome =
      waits ? .leftForDelegate : link.map { deliver($0, entry) } ?? .leftForAnotherWatch
    state.withLock {
      $0.isHandingOver = false
      if case .leftForAnotherWatch = outcome { $0.hasForeign = true }
      if case .leftForDelegate = outcome { $0.hasUndelegated = true }
    }
    return outcome
  }
}

/// The outcome of handing over a delivery.
enum HandOver: Sendable {
  case done
  /// There was no space for it.
  case delayed
  /// It is handed over, but its end could not be recorded; the closure tries it again.
  case unsettled(@Sendable () throws -> Void)
  case leftForAnotherWatch
  case leftForDelegate
}
