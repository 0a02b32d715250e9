public import PropertyLists

extension PeerSession {
  /// Asks a peer, and waits for its answer.
  ///
  /// Ends in exactly one of: the reply; `failed`, `notHandled` or `notAnswered` by the peer's handler;
  /// `unreachable`, at once when nobody answers under that name (and none can be launched), or when
  /// the peer ends before it answers; `timedOut`. Requests to one peer arrive in the order in which
  /// they were made.
  ///
  /// - Parameters:
  ///   - value: what to ask.
  ///   - peer: whom.
  ///   - timeout: how long to wait, starting the peer included.
  public func request(
    _ value: PropertyListValue, to peer: String, timeout: Duration = .seconds(10)
  ) throws -> PropertyListValue { preconditionFailure("unbuilt") }

  /// Asks a peer; see the form without `async`. Cancelling the task ends the call, and tells the peer.
  public func request(
    _ value: PropertyListValue, to peer: String, timeout: Duration = .seconds(10)
  ) async throws -> PropertyListValue { preconditionFailure("unbuilt") }

  /// Asks a peer with a value of one type, and gets one of another; see the dynamic form.
  public func request<Request: Encodable & Sendable, Reply: Decodable & Sendable>(
    _ value: Request, to peer: String, expecting: Reply.Type, timeout: Duration = .seconds(10)
  ) async throws -> Reply { preconditionFailure("unbuilt") }

  /// Asks a peer and goes on; the order of calls is the order in which the peer gets them.
  ///
  /// - Parameters:
  ///   - expectsReply: false to hear only that a handler has the value: the result is then an empty
  ///     dictionary.
  ///   - completion: called exactly once, on a queue of the session.
  /// - Returns: by what to cancel it.
  @discardableResult
  public func request(
    _ value: PropertyListValue, to peer: String, expectsReply: Bool = true,
    timeout: Duration = .seconds(10),
    completion: @escaping @Sendable (Result<PropertyListValue, PeerError>) -> Void
  ) -> PeerCall { preconditionFailure("unbuilt") }

  /// Gives a peer a value at once; returns when a handler of it has it. No reply is expected.
  ///
  /// - Throws: as `request`.
  public func send(
    _ value: PropertyListValue, to peer: String, timeout: Duration = .seconds(10)
  ) throws { preconditionFailure("unbuilt") }

  /// Gives a peer a value at once; see the form without `async`.
  public func send(
    _ value: PropertyListValue, to peer: String, timeout: Duration = .seconds(10)
  ) async throws { preconditionFailure("unbuilt") }

  /// Asks all peers that can be reached, at once.
  ///
  /// - Returns: the answer, or the error, of each.
  public func broadcast(
    _ value: PropertyListValue, timeout: Duration = .seconds(10)
  ) async throws -> [String: Result<PropertyListValue, PeerError>] {
    preconditionFailure("unbuilt")
  }
}

/// A request under way.
public final class PeerCall: Sendable {
  init() {}

  /// Ends it as `cancelled`, unless it has ended; the peer's handler is told.
  public func cancel() { preconditionFailure("unbuilt") }
}
