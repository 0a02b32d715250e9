public import Foundation
import Wormhole
import WormholePeers

/// An extension that Apple's framework does not have: what is sent can lose its worth, with time or by
/// something newer.
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
  ///   - lifetime: how long it may be delivered; nil for ever. A counterpart that receives later does not
  ///     get it, and the delegate here gets `transferTimedOut` then.
  ///   - key: a newer dictionary with the same key takes the place of one that waits; nil for none. The
  ///     delegate here gets `deliveryFailed` for the older one. One that the counterpart has already
  ///     is delivered.
  /// - Complexity: as `PeerSession.enqueue`.
  @discardableResult
  public func transferUserInfo(
    _ userInfo: [String: Any], expiresAfter lifetime: Duration?, key: String? = nil
  ) -> WCSessionUserInfoTransfer {
    transfer(userInfo, .init(expiry: lifetime, key: key, keepsReceipt: true))
  }

  /// Sends a file as `transferFile(_:metadata:)` does, but only as long as it has not expired.
  ///
  /// Files have no keys: one whose copying has begun is sent.
  ///
  /// - Parameters:
  ///   - file: a regular file.
  ///   - metadata: a property list that is sent with it.
  ///   - lifetime: how long it may be delivered, its copying included; nil for ever. A counterpart that
  ///     receives later does not get it, and the delegate here gets `transferTimedOut` then.
  @discardableResult
  public func transferFile(
    _ file: URL, metadata: [String: Any]?, expiresAfter lifetime: Duration?
  ) -> WCSessionFileTransfer {
    transfer(file, metadata, options: .init(expiry: lifetime))
  }
}

extension WCSessionMessaging where Self == WCSession {
  /// Sends a dictionary as `sendMessage(_:replyHandler:errorHandler:)` does, with a time of its own
  /// instead of the session's.
  ///
  /// - Parameters:
  ///   - message: the dictionary.
  ///   - lifetime: how long it may be delivered and replied to, at most the time that was configured. A
  ///     counterpart that was stopped meanwhile does not get it any more. Afterwards the error handler
  ///     gets `messageReplyTimedOut`, or `transferTimedOut` if no reply was expected.
  ///   - replyHandler: gets the reply; nil if none is expected.
  ///   - errorHandler: gets a `WCError`.
  public func sendMessage(
    _ message: [String: Any], expiresAfter lifetime: Duration,
    replyHandler: (@isolated(any) ([String: Any]) -> Void)?,
    errorHandler: (@isolated(any) (any Error) -> Void)? = nil
  ) {
    self.send(.init(dictionaries: replyHandler, error: errorHandler), within: lifetime) {
      try Payload.value(message, maximumBytes: Payload.maximumMessageBytes)
    }
  }
}
