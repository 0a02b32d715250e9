internal import WatchConnectivity

extension Communicator {
  /// How far the session is.
  ///
  /// Observers are told whenever it is activated, becomes inactive, is deactivated, or cannot be
  /// activated.
  public enum State: Sendable {
    /// Not activated yet, or between one watch and the next: nothing can be sent.
    case notActivated
    /// On the way to another watch: what was sent before still comes, nothing can be sent.
    case inactive
    /// It sends and receives.
    case activated
  }
}

extension Communicator.State {
  init(_ state: WCSessionActivationState) {
    switch state {
    case .notActivated: self = .notActivated
    case .inactive: self = .inactive
    case .activated: self = .activated
    }
  }
}

extension Communicator.State: Observable {
  /// Who observes the session's state.
  public static let observations = Observations<Self>()
}
