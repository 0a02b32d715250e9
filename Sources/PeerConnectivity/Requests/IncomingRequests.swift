import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// The requests of others to one session: they wait for a handler, are handed over, and are told when
/// their senders do not wait any more.
final class IncomingRequests: Sendable {
  /// A call, among all of all sessions.
  struct Key: Hashable, Sendable {
    let id: UInt64
    let replyTo: String
  }

  enum Handler: Sendable {
    /// Nobody yet: they wait.
    case none
    case refuse
    case queue(DispatchQueue, @Sendable (PeerRequest) -> Void)
    /// The first part is short and throws at once; the second is the work.
    case task(@Sendable (PeerRequest) throws -> Work)

    typealias Work = @Sendable () async throws -> PropertyListValue
  }

  private struct Open { weak var request: PeerRequest? }

  private struct State {
    var handler = Handler.none
    var waiting: [PeerRequest] = []
    var open: [Key: Open] = [:]
    var requesters: [String: Requester] = [:]
    /// How many requests a queue has, or its handler.
    var enqueued = 0
    /// The thread that has read a request is about to call the handler on its queue.
    var isEntering = false
    /// What came after that: enqueued when the handler is called.
    var behind: [(queue: DispatchQueue, work: @Sendable () -> Void)] = []
  }

  /// More unanswered requests than this are refused, and so many senders are known at a time.
  private static let maximumOpen = 10_000
  private static let maximumRequesters = 1_000

  private let container: SharedContainer
  private let state = Mutex(State())

  init(_ container: SharedContainer) { self.container = container }

  // MARK: What comes

  /// Takes a request; on the thread that has read it, perhaps the monitor's.
  func receive(_ call: RequestMessage.IncomingCall, _ delivery: Mailbox.Delivery) {
    guard !call.expiry.hasPassed else { return }
    do {
      guard let requester = try requester(call.replyTo) else { return }
      let request = PeerRequest(call, from: requester) { [weak self] in self?.forget($0) }
      let isRefused = state.withLock { state in
        guard state.open.count < Self.maximumOpen else { return true }
        state.open[request.key] = Open(request: request)
        // Under the lock, so that none overtakes another: enqueues, and never blocks.
        hand(request, &state, delivery)
        return false
      }
      if isRefused {
        refuse(request, .queueFull, "\(Self.maximumOpen) requests are not answered yet")
      }
    } catch {
      // No descriptor left: its sender's time passes.
      return
    }
  }

  /// Answers a request that nobody is to handle.
  func refuse(_ call: RequestMessage.IncomingCall, _ failure: PeerAnswer.Failure) {
    guard let outlet = MailboxOutlet(in: container, to: call.replyTo) else { return }
    Blocking.queue().async {
      do {
        _ = try outlet.post(RequestMessage.failure(id: call.id, failure).propertyList)
      } catch {
        // Its sender's time passes.
        return
      }
    }
  }

  func cancel(_ key: Key) {
    // Out of the lock with the request: it may be forgotten here.
    let request = state.withLock { state -> PeerRequest? in
      let request = state.open[key]?.request
      state.waiting.removeAll { $0.key == key }
      return request
    }
    request?.cancel()
  }

  func cancelAll() {
    let requests = state.withLock { state in
      state.waiting = []
      return state.open.values.compactMap(\.request)
    }
    for request in requests { request.cancel() }
  }

  private func forget(_ key: Key) { state.withLock { _ = $0.open.removeValue(forKey: key) } }

  // MARK: Who asks

  private func requester(_ address: String) throws -> Requester? {
    if let known = state.withLock({ $0.requesters[address] }) { return known }
    let new = try Requester(in: container, address) { [weak self] in self?.ended(address) }
    guard let new else { return nil }
    let superfluous = state.withLock { state -> [String: Requester] in
      var old: [String: Requester] = [:]
      if state.requesters.count >= Self.maximumRequesters {
        let needed = Set(state.open.keys.map(\.replyTo))
        old = state.requesters.filter { !needed.contains($0.key) }
        for address in old.keys { state.requesters[address] = nil }
      }
      state.requesters[address] = new
      return old
    }
    // Forgotten out of the lock, for that ends their watches.
    _ = superfluous
    return new
  }

  private func ended(_ address: String) {
    let (requester, requests) = state.withLock { state in
      let requests = state.open.filter { $0.key.replyTo == address }.compactMap(\.value.request)
      state.waiting.removeAll { $0.key.replyTo == address }
      return (state.requesters.removeValue(forKey: address), requests)
    }
    for request in requests { request.cancel() }
    _ = requester
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
    case .refuse: refuse(request, .notHandled, "the peer handles no requests")
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

  // Without a hop to another thread, if the queue is idle; what came after it still comes after it.
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

  private func refuse(_ request: PeerRequest, _ code: PeerError.Code, _ reason: String) {
    Blocking.queue().async {
      do {
        _ = try request.answer(.failure(.init(code, reason)))
      } catch {
        // Its sender was told, if it can be.
        return
      }
    }
  }

  private static func call(_ handler: (PeerRequest) -> Void, _ request: PeerRequest) {
    guard !request.isCancelled else { return request.cancel() }
    handler(request)
    // Unless the handler has refused it.
    if !request.expectsReply { request.acknowledge() }
  }

  private static func begin(
    _ prepare: @escaping @Sendable (PeerRequest) throws -> Handler.Work, _ request: PeerRequest
  ) {
    let task = Task {
      guard !request.isCancelled else { return request.cancel() }
      let answer: PeerAnswer
      do {
        let work = try prepare(request)
        if !request.expectsReply { try await Blocking.run { request.acknowledge() } }
        answer = .reply(try await work())
      } catch {
        answer = .failure((error as? PeerAnswer.Thrown)?.failure ?? .init(.failed, "\(error)"))
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

extension PeerAnswer {
  /// What a handler's own preparation throws, with its code.
  struct Thrown: Error { let failure: Failure }
}
