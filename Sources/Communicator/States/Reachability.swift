public import WatchConnectivity

/// How the counterpart can be reached.
///
/// Observers are told whenever it may have changed, at times also when it has not.
public enum Reachability: Sendable, Hashable {
  /// The session is not activated, or the counterpart's app is not installed: nothing can be sent.
  case notReachable
  /// What is sent waits until the counterpart runs: guaranteed messages, blobs, contexts and
  /// complication info.
  case backgroundOnly
  /// Everything can be sent, immediate messages too.
  case immediatelyReachable

  /// The same as `immediatelyReachable`, as the original's README spells it.
  public static var immediateMessaging: Reachability { .immediatelyReachable }

  /// How the counterpart of a session can be reached now.
  public init(session: WCSession) {
    self.init(
      isActivated: session.activationState == .activated,
      isCounterpartInstalled: session.isCounterpartInstalled, isReachable: session.isReachable)
  }

  /// The one rule; the later claims are not looked at when an earlier one does not hold.
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
  func suffices(for minimum: Reachability) -> Bool { rank >= minimum.rank }

  private var rank: Int {
    switch self {
    case .notReachable: 0
    case .backgroundOnly: 1
    case .immediatelyReachable: 2
    }
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
  /// Who observes how the counterpart can be reached.
  public static let observations = Observations<Self>()
}
