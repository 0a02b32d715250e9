import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// The requests of other processes to one session: they wait for a handler, and are handed over.
final class IncomingRequests: Sendable {
  enum Handler: Sendable {
    /// None yet: they wait.
    case none
    case refuse
    case queue(DispatchQueue, @Sendable (PeerRequest) -> Void)
    /// The first part is short and throws at once; the second is the work.
    case task(@Sendable (PeerRequest) throws -> Work)

    typealias Work = @Sendable () async throws -> PropertyListValue
  }

  private struct State {
    var handler = Handler.none
    var waiting: [PeerRequest] = []
    /// How many requests a queue has, or its handler.
    var enqueued = 0
    /// The thread that has read a request is about to call the handler on its queue.
    var isEntering = false
    /// Requests that came after that: enqueued when the handler is called.
    var behind: [(queue: DispatchQueue, work: @Sendable () -> Void)] = []
  }

  private let state = Mutex(State())

  /// Takes a request; on the thread that has read it, perhaps the monitor's.
  func receive(_ request: PeerRequest, _ delivery: Mailbox.Delivery) {
    let waits = state.withLock { state in
      // Under the lock, so that none overtakes another: enqueues, and never blocks.
      hand(request, &state, delivery)
      return state.waiting.last === request
    }
    guard waits else { return }
    let key = request.call.key
    request.onCancel { [weak self] in self?.leave(key) }
  }

  /// A request without a caller need not wait for a handler.
  private func leave(_ key: CallKey) {
    let waiting = state.withLock { state in
      defer { state.waiting.removeAll { $0.call.key == key } }
      return state.waiting
    }
    // Released outside the lock.
    _ = waiting
  }

  // MARK: Handing over

  func handle(_ handler: Handler) {
    let waiting = state.withLock { state in
      state.handler = handler
      let waiting = state.waiting
      state.waiting = []
      for request in waiting { hand(request, &state) }
      return waiting
    }
    _ = waiting
  }

  private func hand(
    _ request: PeerRequest, _ state: inout State, _ delivery: Mailbox.Delivery? = nil
  ) {
    switch state.handler {
    case .none: state.waiting.append(request)
    case .refuse:
      let code = PeerError.Code.notHandled.rawValue
      request.call.refuse(code: code, "the peer handles no requests")
    case .queue(let queue, let handler):
      let work: @Sendable () -> Void = { [self] in
        Self.call(handler, request)
        self.state.withLock { $0.enqueued -= 1 }
      }
      let isIdle = state.enqueued == 0
      state.enqueued += 1
      if state.isEntering {
        state.behind.append((queue, work))
      } else if isIdle, delivery?.goOn(with: { self.enter(queue, work) }) == true {
        state.isEntering = true
      } else {
        queue.async(execute: work)
      }
    case .task(let prepare): Self.begin(prepare, request)
    }
  }

  // Without a hop to another thread, if the queue is idle; later requests still come later.
  private func enter(_ queue: DispatchQueue, _ work: @Sendable () -> Void) {
    queue.sync {
      state.withLock { state in
        // Excludes: a request that comes now and is enqueued before those that came before it.
        for (queue, work) in state.behind { queue.async(execute: work) }
        state.behind = []
        state.isEntering = false
      }
      work()
    }
  }

  private static func call(_ handler: (PeerRequest) -> Void, _ request: PeerRequest) {
    guard !request.isCancelled else { return request.call.end() }
    handler(request)
    // Unless the handler has refused it.
    if !request.expectsReply { request.acknowledge() }
  }

  private static func begin(
    _ prepare: @escaping @Sendable (PeerRequest) throws -> Handler.Work, _ request: PeerRequest
  ) {
    let task = Task {
      guard !request.isCancelled else { return request.call.end() }
      let answer: PeerAnswer
      do {
        let work = try prepare(request)
        if !request.expectsReply { try await Blocking.run { request.acknowledge() } }
        answer = .reply(try await work())
      } catch {
        let thrown = error as? PeerAnswer.Thrown
        answer = .failure(thrown?.code ?? .failed, thrown?.reason ?? "\(error)")
      }
      do {
        _ = try await Blocking.run { try request.answer(answer) }
      } catch {
        // Its sender was told, if it can be.
        return
      }
    }
    request.onCancel { task.cancel() }
  }
}
