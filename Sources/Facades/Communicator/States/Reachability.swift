public import WatchConnectivity

/// The reachability of the counterpart.
///
/// Observers are called whenever it may have changed, and sometimes when it has not.
///
/// ```swift
/// if Communicator.shared.currentReachability == .immediatelyReachable {
///   Communicator.shared.send(ImmediateMessage(identifier: "lights"))
/// }
/// ```
public enum Reachability: Sendable, Hashable {
  /// The session is not activated, or the counterpart's app is not installed: nothing can be sent.
  case notReachable
  /// Guaranteed messages, blobs, contexts and complication info can be sent; they wait until the
  /// counterpart runs.
  case backgroundOnly
  /// Everything can be sent, immediate messages too.
  case immediatelyReachable

  /// `immediatelyReachable`, as the original's README spells it.
  public static var immediateMessaging: Reachability { .immediatelyReachable }

  /// Creates the current reachability of a session's counterpart.
  public init(session: WCSession) {
    self.init(
      isActivated: session.activationState == .activated,
      isCounterpartInstalled: session.role == .phone
        ? session.isWatchAppInstalled : session.isCompanionAppInstalled,
      isReachable: session.isReachable)
  }

  /// The one rule; a later condition is not evaluated if an earlier one does not hold.
  init(
    isActivated: Bool, isCounterpartInstalled: @autoclosure () -> Bool,
    isReachable: @autoclosure () -> Bool
  ) {
    guard isActivated, isCounterpartInstalled() else {
      self = .notReachable
      return
    }
    self = isReachable() ? .immediatelyReachable : .backgroundOnly
  }
}

extension Reachability {
  func suffices(for minimum: Reachability) -> Bool {
    self == minimum || self == .immediatelyReachable || minimum == .notReachable
  }

  var words: String {
    switch self {
    case .notReachable: "not reachable"
    case .backgroundOnly: "reachable in the background only"
    case .immediatelyReachable: "immediately reachable"
    }
  }
}

extension Reachability: Observable {
  /// The observers of the counterpart's reachability.
  public static let observations = Observations<Self>()
}
