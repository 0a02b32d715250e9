public import Foundation
import Wormhole
import WormholePeers

/// An extension that Apple's framework does not have: a transfer can become useless with time, or
/// when a newer one replaces it.
extension WCSession {
  /// Sends a dictionary as `transferUserInfo(_:)` does, but only as long as it has not expired, and only
  /// the newest of its key.
  ///
  /// ```swift
  /// WCSession.default.transferUserInfo(["position": 17], expiresAfter: .seconds(60), key: "position")
  /// ```
  ///
  /// - Parameters:
  ///   - userInfo: the dictionary.
  ///   - lifetime: how long it may be delivered; nil for no limit. A counterpart that receives
  ///     later does not get it, and the delegate here then gets `transferTimedOut`.
  ///   - key: a newer dictionary with the same key replaces a waiting one; nil for none. The
  ///     delegate here gets `deliveryFailed` for the older one. A dictionary that the counterpart
  ///     already has is delivered.
  /// - Complexity: as `PeerSession.enqueue`.
  @discardableResult
  public func transferUserInfo(
    _ userInfo: [String: Any], expiresAfter lifetime: Duration?, key: String? = nil
  ) -> WCSessionUserInfoTransfer {
    transfer(userInfo, .init(expiry: lifetime, key: key, keepsReceipt: true))
  }

  /// Sends a file as `transferFile(_:metadata:)` does, but only as long as it has not expired.
  ///
  /// Files have no keys: a file whose copying has begun is sent.
  ///
  /// - Parameters:
  ///   - file: a regular file.
  ///   - metadata: a property list that is sent with it.
  ///   - lifetime: how long it may be copied and delivered; nil for no limit. A counterpart
  ///     that receives later does not get it, and the delegate here then gets `transferTimedOut`.
  @discardableResult
  public func transferFile(
    _ file: URL, metadata: [String: Any]?, expiresAfter lifetime: Duration?
  ) -> WCSessionFileTransfer {
    transfer(file, metadata, options: .init(expiry: lifetime))
  }
}

extension WCSessionMessaging where Self == WCSession {
  /// Sends a dictionary as `sendMessage(_:replyHandler:errorHandler:)` does, with a time limit of
  /// its own instead of the session's.
  ///
  /// - Parameters:
  ///   - message: the dictionary.
  ///   - lifetime: how long it may be delivered and replied to, at most the configured time. A
  ///     counterpart that was stopped meanwhile does not get it. Afterwards the error handler gets
  ///     `messageReplyTimedOut`, or `transferTimedOut` if no reply was expected.
  ///   - replyHandler: gets the reply; nil if none is expected.
  ///   - errorHandler: gets a `WCError`.
  public func sendMessage(
    _ message: [String: Any], expiresAfter lifetime: Duration,
    replyHandler: (@isolated(any) ([String: Any]) -> Void)?,
    errorHandler: (@isolated(any) (any Error) -> Void)? = nil
  ) {
    self.send(.init(replyHandler, errorHandler, Payload.objects), within: lifetime) {
      try Payload.value(message, maximumBytes: Payload.maximumMessageBytes)
    }
  }
}
