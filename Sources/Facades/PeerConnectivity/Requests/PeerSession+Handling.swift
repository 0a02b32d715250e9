import AppGroup
public import Dispatch
public import PropertyLists

extension PeerSession {
  /// Handles the requests of other peers, while the session is active, with a function that replies or
  /// throws. Each runs in a task of its own, which is cancelled when its sender does not wait any more.
  /// They begin in no order.
  ///
  /// There is one handler at a time. Requests that come before there is one wait for it, for as long as
  /// their senders do. The session keeps its handler, so a handler should hold the session weakly.
  ///
  /// An error that it throws reaches the sender as `failed`, with the error's description as the reason. A
  /// sender that expects no reply is told when the task begins; the reply is ignored then.
  ///
  /// - Parameter handler: takes the place of the handler before.
  public func handleRequests(
    _ handler: @escaping @Sendable (PeerRequest) async throws -> PropertyListValue
  ) {
    incoming.handle(.task { request in { try await handler(request) } })
  }

  /// Handles requests on a queue, in the order in which each sender sent them; the handler answers
  /// then or later.
  ///
  /// A sender that expects no reply is told when the handler returns, unless it has answered before.
  ///
  /// - Parameters:
  ///   - queue: a serial one, where the order matters.
  ///   - handler: takes the place of the handler before.
  public func handleRequests(
    on queue: DispatchQueue, _ handler: @escaping @Sendable (PeerRequest) -> Void
  ) {
    incoming.handle(.queue(queue, handler))
  }

  /// Handles requests of one type with a function that returns another.
  ///
  /// A request of another type is answered with `unexpectedValue`, and the handler is not called.
  public func handleRequests<Request: Decodable & Sendable, Reply: Encodable & Sendable>(
    of type: Request.Type,
    _ handler: @escaping @Sendable (Request, PeerRequest) async throws -> Reply
  ) {
    incoming.handle(
      .task { request throws(PeerError) in
        let value = try request.value.decoded(
          as: type, "handle a request", from: request.sender)
        return { try PropertyListValue(encoding: await handler(value, request)) }
      })
  }

  /// From now on requests are answered with `notHandled`, also those that wait.
  public func refuseRequests() { incoming.handle(.refuse) }
}
