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
    /// The first part is short, and refuses a request that is of a different type; the second is the work.
    case task(@Sendable (PeerRequest) throws(PeerError) -> Work)

    typealias Work = @Sendable () async throws -> PropertyListValue
  }

  private struct State {
    var handler = Handler.none
    var waiting: [PeerRequest] = []
  }

  private let state = Mutex(State())

  /// Takes a request; on the thread that has read it, perhaps the monitor's.
  func receive(_ request: PeerRequest) {
    let waits = state.withLock { state in
      // Under the lock, so that none overtakes another: enqueues, and never blocks.
      hand(request, &state)
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

  private func hand(_ request: PeerRequest, _ state: inout State) {
    switch state.handler {
    case .none: state.waiting.append(request)
    case .refuse:
      let code = PeerError.Code.notHandled.rawValue
      request.call.refuse(code: code, "the peer handles no requests")
    case .queue(let queue, let handler):
      queue.async { Self.call(handler, request) }
    case .task(let prepare): Self.begin(prepare, request)
    }
  }

  private static func call(_ handler: (PeerRequest) -> Void, _ request: PeerRequest) {
    guard !request.isCancelled else { return request.call.end() }
    handler(request)
    // Unless the handler has refused it.
    if !request.expectsReply { request.acknowledge() }
  }

  private static func begin(
    _ prepare: @escaping @Sendable (PeerRequest) throws(PeerError) -> Handler.Work,
    _ request: PeerRequest
  ) {
    let task = Task {
      guard !request.isCancelled else { return request.call.end() }
      let answer = await answer(to: request, prepare)
      do {
        _ = try await Blocking.run { try request.answer(answer) }
      } catch {
        // Its sender was told, if it can be.
        return
      }
    }
    request.onCancel { task.cancel() }
  }

  private static func answer(
    to request: PeerRequest, _ prepare: (PeerRequest) throws(PeerError) -> Handler.Work
  ) async -> CallAnswer {
    let work: Handler.Work
    do throws(PeerError) {
      work = try prepare(request)
    } catch {
      return .failure(code: error.code.rawValue, reason: error.reason)
    }
    do {
      if !request.expectsReply { try await Blocking.run { request.acknowledge() } }
      return .reply(try await work())
    } catch {
      return .failure(code: PeerError.Code.failed.rawValue, reason: "\(error)")
    }
  }
}

extension PeerSession {
  func receive(_ call: IncomingCall) {
    guard let request = PeerRequest(call) else { return }
    reachabilities.heard(from: request.sender)
    guard state.withLock({ $0.registration != nil || $0.isActivating }) else {
      let code = PeerError.Code.unreachable.rawValue
      return call.refuse(code: code, "the session is not active any more")
    }
    incoming.receive(request)
  }
}
