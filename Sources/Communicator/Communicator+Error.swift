extension Communicator {
  /// Why the communicator did not even hand something over to the session; whatever happens after
  /// that is a `WCError`.
  public enum Error: Swift.Error, Sendable, Hashable {
    /// The counterpart cannot be reached as this kind of message needs.
    case sessionIsNotReachable(minimumReachability: Reachability, actual: Reachability)
  }
}

extension Communicator.Error: CustomStringConvertible {
  public var description: String {
    switch self {
    case .sessionIsNotReachable(let minimum, let actual):
      "cannot send: the counterpart is \(actual.words), and this needs it to be \(minimum.words); "
        + "wait until Reachability.observe tells so"
    }
  }
}
