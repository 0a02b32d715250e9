extension Communicator {
  /// The reason why the communicator did not hand a message over to the session. A later failure is
  /// a `WCError`.
  ///
  /// ```swift
  /// Communicator.shared.send(ImmediateMessage(identifier: "lights")) { error in
  ///   if case Communicator.Error.sessionIsNotReachable(let needed, let actual) = error {
  ///     print("it is \(actual), and has to be \(needed)")
  ///   }
  /// }
  /// ```
  public enum Error: Swift.Error, Sendable, Hashable {
    /// The counterpart is less reachable than this kind of message requires.
    case sessionIsNotReachable(minimumReachability: Reachability, actual: Reachability)
  }
}

extension Communicator.Error: CustomStringConvertible {
  public var description: String {
    switch self {
    case .sessionIsNotReachable(let minimum, let actual):
      "cannot send: the counterpart is \(actual.words), and this needs it to be \(minimum.words); "
        + "wait until Reachability.observe reports it"
    }
  }
}
