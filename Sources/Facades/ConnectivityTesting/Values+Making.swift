public import Foundation
public import WatchConnectivity

// The values that a session hands to its delegate, for tests that call a delegate's methods.
extension WCSessionFile {
  /// Makes a file as a delegate gets it; the test itself makes and removes the file.
  public static func making(_ url: URL, metadata: [String: Any]? = nil) -> WCSessionFile {
    WCSessionFile(url, CarriedObjects(made: metadata))
  }
}

extension WCSessionUserInfoTransfer {
  /// Makes the transfer of a dictionary as a delegate gets it. No session sends it. While it is
  /// under way, `cancel()` is in time.
  public static func making(
    _ userInfo: [String: Any] = [:], isTransferring: Bool = false,
    isCurrentComplicationInfo: Bool = false
  ) -> WCSessionUserInfoTransfer {
    WCSessionUserInfoTransfer(
      CarriedObjects(made: userInfo), isTransferring: isTransferring,
      isCurrent: isCurrentComplicationInfo)
  }
}

extension WCSessionFileTransfer {
  /// Makes the transfer of a file, at its sender's place, as a delegate gets it. No session sends
  /// it. While it is under way, `cancel()` is in time, and its progress is not complete.
  public static func making(
    _ url: URL, metadata: [String: Any]? = nil, isTransferring: Bool = false
  ) -> WCSessionFileTransfer {
    WCSessionFileTransfer(
      .making(url, metadata: metadata), isTransferring: isTransferring,
      isComplete: !isTransferring)
  }
}
