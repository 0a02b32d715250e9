public import Dispatch
public import PropertyLists

/// Where a session's requests are handled: by one handler at a time.
///
/// Requests that come before there is a handler wait for it, for as long as their senders do. The
/// session keeps its handler, so one that needs the session should hold it weakly.
public struct PeerRequests: Sendable {
  let session: PeerSession

  /// Handles requests with a function that replies or throws; each in a task of its own, which is
  /// cancelled when its sender does not wait any more. They begin in no order.
  ///
  /// What it throws reaches the sender as `failed`, with the error's description as the reason. A
  /// sender that expects no reply is told when the task begins; what it returns is ignored then.
  ///
  /// - Parameter handler: takes the place of the handler before.
  public func handle(
    _ handler: @escaping @Sendable (PeerRequest) async throws -> PropertyListValue
  ) {
    session.core.incoming.handle(.task { request in { try await handler(request) } })
  }

  /// Handles requests on a queue, in the order in which each sender sent them; the handler answers
  /// then or later.
  ///
  /// A sender that expects no reply is told when the handler returns, unless it has answered before.
  ///
  /// - Parameters:
  ///   - queue: a serial one, where the order matters.
  ///   - handler: takes the place of the handler before.
  public func handle(
    on queue: DispatchQueue, _ handler: @escaping @Sendable (PeerRequest) -> Void
  ) {
    session.core.incoming.handle(.queue(queue, handler))
  }

  /// Handles requests of one type with a function that returns another.
  ///
  /// A request of another type is answered with `unexpectedValue`, and the handler is not called.
  public func handle<Request: Decodable & Sendable, Reply: Encodable & Sendable>(
    _ type: Request.Type,
    _ handler: @escaping @Sendable (Request, PeerRequest) async throws -> Reply
  ) {
    session.core.incoming.handle(
      .task { request in
        let value: Request
        do throws(PeerError) {
          value = try request.value.decoded(as: type, "handle a request", from: request.sender)
        } catch {
          throw PeerAnswer.Thrown(failure: .init(.unexpectedValue, error.reason))
        }
        return { try PropertyListValue(encoding: await handler(value, request)) }
      })
  }

  /// From now on requests are answered with `notHandled`, those that wait too.
  public func refuseAll() { session.core.incoming.handle(.refuse) }
}

extension PeerSession {
  /// The requests of other peers, while the session is active.
  public var requests: PeerRequests { PeerRequests(session: self) }
}
