internal import WatchConnectivity

extension Communicator {
  /// The state of the session.
  ///
  /// Observers are called whenever it is activated, becomes inactive, is deactivated, or cannot be
  /// activated.
  ///
  /// ```swift
  /// Communicator.State.observe { state in if state == .activated { print("ready") } }
  /// ```
  public enum State: Sendable {
    /// Not activated yet, or between two watches: nothing can be sent.
    case notActivated
    /// Changing to another watch: earlier messages still arrive, but nothing can be sent.
    case inactive
    /// The session sends and receives.
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
  /// The observers of the session's state.
  public static let observations = Observations<Self>()
}
