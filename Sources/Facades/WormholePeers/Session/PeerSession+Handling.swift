public import Dispatch
import Synchronization
import Wormhole
public import WormholePropertyLists
import WormholeToolkit

extension PeerSession {
  /// Handles other peers' requests, while the session is active, with a function that replies or
  /// throws. Each runs in its own task, which is cancelled when its sender stops waiting. They
  /// begin in no order.
  ///
  /// There is one handler at a time. Requests that arrive before a handler is set wait for it, as
  /// long as their senders do. The session keeps its handler, which should hold the session weakly.
  ///
  /// The sender gets a handler's error as `failed`, with its description as reason. A sender that
  /// expects no reply gets its receipt when the task begins; the reply is ignored.
  ///
  /// - Parameter handler: replaces the previous handler.
  public func handleRequests(
    _ handler: @escaping @Sendable (PeerRequest) async throws -> PropertyListValue
  ) {
    incoming.handleAsTasks { request in { try await handler(request) } }
  }

  /// Handles requests on a queue, in the order in which each sender sent them; the handler answers
  /// then or later.
  ///
  /// A sender that expects no reply gets its receipt when the handler returns, unless answered
  /// before.
  ///
  /// - Parameters:
  ///   - queue: a serial queue if the order matters.
  ///   - handler: replaces the previous handler.
  public func handleRequests(
    on queue: DispatchQueue, _ handler: @escaping @Sendable (PeerRequest) -> Void
  ) {
    incoming.handle { request in
      queue.async {
        IncomingRequests.call(request) { request in
          handler(request)
          return true
        }
      }
    }
  }

  /// Handles requests on a queue like `handleRequests`, with a handler that returns whether it has
  /// taken the request. A request that it leaves gets no receipt: it waits, as long as its sender
  /// does, until this is called again. The new handler gets it before any later one.
  ///
  /// - Parameter queue: a serial queue, on which this is called.
  package func offerRequests(
    on queue: DispatchQueue, _ handler: @escaping @Sendable (PeerRequest) -> Bool
  ) {
    incoming.offer(on: queue, handler)
  }

  /// Handles requests of one type with a function that returns another.
  ///
  /// A request of another type is answered with `unexpectedValue`, and the handler is not called.
  public func handleRequests<Request: Decodable & Sendable, Reply: Encodable & Sendable>(
    of type: Request.Type,
    _ handler: @escaping @Sendable (Request, PeerRequest) async throws -> Reply
  ) {
    incoming.handleAsTasks { request throws(WormholeError) in
      let value = try request.value.decoded(
        as: type, "handle a request", from: request.sender)
      return { try PropertyListValue(encoding: await handler(value, request)) }
    }
  }

  /// Answers requests with `notHandled` from now on, including those that wait.
  public func refuseRequests() {
    incoming.handle { request in
      let code = WormholeError.Code.notHandled.rawValue
      request.call.refuse(code: code, "the peer handles no requests")
    }
  }
}

extension PeerSession {
  func receive(_ call: IncomingCall) {
    guard let request = PeerRequest(call) else { return }
    reachabilities.heard(from: request.sender)
    guard state.withLock({ $0.registration != nil || $0.isActivating }) else {
      let code = WormholeError.Code.unreachable.rawValue
      return call.refuse(code: code, "the session is not active any more")
    }
    incoming.receive(request)
  }
}
