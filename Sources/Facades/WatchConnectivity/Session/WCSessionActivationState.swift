/// The progress of a session's activation.
///
/// ```swift
/// if WCSession.default.activationState != .activated { WCSession.default.activate() }
/// ```
public enum WCSessionActivationState: Int, Sendable {
  /// No communication; before `activate()`, and after a switch to another watch.
  case notActivated = 0
  /// On its way to another watch: it may still receive, and must not send.
  case inactive = 1
  /// It sends and receives.
  case activated = 2
}
