/// What a watch knows of its phone.
///
/// Observers are told on a watch: after each activation, and whenever the session says that the phone's
/// app was installed or removed. (In the original they never were.)
public enum PhoneState: Sendable, Hashable {
  /// A phone is paired.
  case paired(AppState)
  /// No phone is paired.
  case notPaired

  /// Whether the app is on the phone.
  public enum AppState: Sendable, Hashable {
    /// It is.
    case installed
    /// It is not.
    case notInstalled
  }
}

extension PhoneState: Observable {
  /// Who observes the state of the phone.
  public static let observations = Observations<Self>()
}
