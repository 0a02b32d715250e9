import WatchConnectivity

/// The question before each transfer, as apps for both devices ask it: with one condition, so that on Linux both
/// sides have the same branch.
public enum PeerGate {
  public static func canSendToPeer() -> Bool {
    guard WCSession.default.activationState == .activated else {
      return false
    }
    #if os(watchOS)
      guard WCSession.default.isCompanionAppInstalled else {
        return false
      }
    #else
      guard WCSession.default.isWatchAppInstalled else {
        return false
      }
    #endif
    return true
  }
}
