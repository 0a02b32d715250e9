internal import WatchConnectivity

/// The state of the phone, as a watch knows it.
///
/// Observers on a watch are called after each activation, and whenever the session reports that the
/// phone's app was installed or removed. (The original never calls them.)
///
/// ```swift
/// if case .paired(.installed) = Communicator.shared.currentPhoneState { print("the phone has the app") }
/// ```
public enum PhoneState: Sendable, Hashable {
  /// A phone is paired.
  case paired(AppState)
  /// No phone is paired.
  case notPaired

  /// Whether the app is on the phone.
  ///
  /// ```swift
  /// PhoneState.observe { state in if state == .paired(.notInstalled) { print("no app there") } }
  /// ```
  public enum AppState: Sendable, Hashable {
    /// The app is installed.
    case installed
    /// The app is not installed.
    case notInstalled
  }
}

extension PhoneState {
  init(session: WCSession) {
    self =
      session.role == .watch && session.isPaired
      ? .paired(session.isCompanionAppInstalled ? .installed : .notInstalled) : .notPaired
  }
}

extension PhoneState: Observable {
  /// The observers of the phone's state.
  public static let observations = Observations<Self>()
}
