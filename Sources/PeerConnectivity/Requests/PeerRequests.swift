public import Dispatch
public import PropertyLists

/// Where a session's requests are handled: by one handler at a time.
///
/// Requests that come before there is a handler wait for it, for as long as their senders do.
public struct PeerRequests: Sendable {
  let session: PeerSession

  /// Handles requests with a function that replies or throws; each in a task of its own, which is
  /// cancelled when its sender does not wait any more.
  ///
  /// What it throws reaches the sender as `failed`, with the error's description as the reason. For a
  /// request that expects no reply what it returns is ignored.
  ///
  /// - Parameter handler: takes the place of the handler before.
  public func handle(
    _ handler: @escaping @Sendable (PeerRequest) async throws -> PropertyListValue
  ) { preconditionFailure("unbuilt") }

  /// Handles requests on a queue, in the order in which each sender sent them; the handler answers
  /// then or later.
  public func handle(
    on queue: DispatchQueue, _ handler: @escaping @Sendable (PeerRequest) -> Void
  ) { preconditionFailure("unbuilt") }

  /// Handles requests of one type with a function that returns another.
  public func handle<Request: Decodable & Sendable, Reply: Encodable & Sendable>(
    _ type: Request.Type,
    _ handler: @escaping @Sendable (Request, PeerRequest) async throws -> Reply
  ) { preconditionFailure("unbuilt") }

  /// From now on requests are answered with `notHandled`.
  public func refuseAll() { preconditionFailure("unbuilt") }
}

extension PeerSession {
  /// The requests of other peers, while the session is active.
  public var requests: PeerRequests { PeerRequests(session: self) }
}
