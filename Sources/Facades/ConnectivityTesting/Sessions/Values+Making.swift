public import Foundation
public import WatchConnectivity

// The values that a session hands to its delegate, for tests that call a delegate's methods themselves.
extension WCSessionFile {
  /// Makes a file as it is handed to a delegate.
  ///
  /// - Parameters:
  ///   - url: the file's place; the test makes and removes it.
  ///   - metadata: the metadata of the file.
  public static func making(_ url: URL, metadata: [String: Any]? = nil) -> WCSessionFile {
    WCSessionFile(url, CarriedObjects(made: metadata))
  }
}

extension WCSessionUserInfoTransfer {
  /// Makes the transfer of a dictionary as it is handed to a delegate. No session sends it.
  ///
  /// - Parameters:
  ///   - userInfo: the dictionary.
  ///   - isTransferring: whether it is still under way; then `cancel()` is in time.
  ///   - isCurrentComplicationInfo: whether it is the last for the complication.
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
  /// Makes the transfer of a file as it is handed to a delegate. No session sends it.
  ///
  /// - Parameters:
  ///   - url: the file at its sender's place.
  ///   - metadata: the metadata that is sent with it.
  ///   - isTransferring: whether it is still under way; then `cancel()` is in time, and its progress is not
  ///     complete.
  public static func making(
    _ url: URL, metadata: [String: Any]? = nil, isTransferring: Bool = false
  ) -> WCSessionFileTransfer {
    WCSessionFileTransfer(
      .making(url, metadata: metadata), isTransferring: isTransferring,
      isComplete: !isTransferring)
  }
}
