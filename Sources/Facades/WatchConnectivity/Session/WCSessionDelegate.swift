public import Foundation

/// The progress of a session's activation.
///
/// ```swift
/// if WCSession.default.activationState != .activated { WCSession.default.activate() }
/// ```
public enum WCSessionActivationState: Int, Sendable {
  /// No communication: before `activate()`, and after a switch to another watch.
  case notActivated = 0
  /// It is switching to another watch: it may still receive, and must not send.
  case inactive = 1
  /// It sends and receives.
  case activated = 2
}

/// The calls of a session to its app; all are made on one serial background queue.
///
/// Every method but the first has a default implementation, so a delegate implements only those it
/// needs. Unlike with Apple's, a message or transfer for which the delegate has no method is not
/// silently dropped: its sender gets `deliveryFailed`.
///
/// A delegate's conformance cannot be isolated to an actor, because the calls come on the session's
/// queue. In a target whose default isolation is the main actor, a class that names this protocol
/// where it is declared is of no actor; in one marked `@MainActor`, each method is `nonisolated`.
///
/// ```swift
/// final class Link: NSObject, WCSessionDelegate {
///   func session(
///     _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
///     error: (any Error)?
///   ) {
///     if let error { print(error) }
///   }
///   func session(
///     _ session: WCSession, didReceiveMessage message: [String: Any],
///     replyHandler: @escaping ([String: Any]) -> Void
///   ) {
///     replyHandler(["sold": message["seats"] as? [Int] ?? []])
///   }
/// }
/// ```
public protocol WCSessionDelegate: NSObjectProtocol, SendableMetatype {
  /// The activation has ended; in the state `notActivated` it failed, with the error.
  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?)

  /// On the phone: another watch becomes the active one. Nothing more can be sent; everything
  /// already received is still delivered.
  func sessionDidBecomeInactive(_ session: WCSession)

  /// On the phone: everything received from the previous watch is delivered. `activate()` begins
  /// with the watch that is active now; the default implementation calls it.
  func sessionDidDeactivate(_ session: WCSession)

  /// On the phone: `isPaired`, `isWatchAppInstalled`, `isComplicationEnabled`,
  /// `remainingComplicationUserInfoTransfers` or `watchDirectoryURL` has changed.
  func sessionWatchStateDidChange(_ session: WCSession)

  /// On the watch: `isCompanionAppInstalled` has changed.
  func sessionCompanionAppInstalledDidChange(_ session: WCSession)

  /// `isReachable` has changed.
  func sessionReachabilityDidChange(_ session: WCSession)

  /// A message arrived whose sender expects no reply.
  func session(_ session: WCSession, didReceiveMessage message: [String: Any])

  /// A message arrived whose sender waits for a reply: call the handler once, now or later. If the
  /// handler is released without a call, the sender learns of it at once.
  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void)

  /// Data arrived whose sender expects no reply.
  func session(_ session: WCSession, didReceiveMessageData messageData: Data)

  /// Data arrived whose sender waits for a reply; see the form for dictionaries.
  func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void)

  /// The counterpart's application context has changed, perhaps before this process began.
  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any])

  /// A dictionary sent with `transferUserInfo` arrived; it counts as delivered when this returns.
  /// If the process ends before that, it is delivered again.
  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any])

  /// A dictionary was delivered, or failed, even one from an earlier process of this side. Not
  /// called for a cancelled one.
  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?)

  /// A file arrived. It is deleted when this returns, unless it was moved.
  func session(_ session: WCSession, didReceive file: WCSessionFile)

  /// A file was delivered, or failed, even one from an earlier process of this side. Not called for
  /// a cancelled one.
  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?)
}

extension WCSessionDelegate {
  /// Does nothing.
  public func sessionDidBecomeInactive(_ session: WCSession) {}

  /// Activates the session for the watch that is active now.
  public func sessionDidDeactivate(_ session: WCSession) { session.activate() }

  /// Does nothing.
  public func sessionWatchStateDidChange(_ session: WCSession) { DelegateCall.lacksMethod() }

  /// Does nothing.
  public func sessionCompanionAppInstalledDidChange(_ session: WCSession) {
    DelegateCall.lacksMethod()
  }

  /// Does nothing.
  public func sessionReachabilityDidChange(_ session: WCSession) { DelegateCall.lacksMethod() }

  /// The message's sender gets `deliveryFailed`.
  public func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    DelegateCall.decline()
  }

  /// The message's sender gets `deliveryFailed`.
  public func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) { DelegateCall.decline() }

  /// The data's sender gets `deliveryFailed`.
  public func session(_ session: WCSession, didReceiveMessageData messageData: Data) {
    DelegateCall.decline()
  }

  /// The data's sender gets `deliveryFailed`.
  public func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void
  ) { DelegateCall.decline() }

  /// Does nothing: `receivedApplicationContext` has it.
  public func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) { DelegateCall.lacksMethod() }

  /// The dictionary's sender gets `deliveryFailed`.
  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    DelegateCall.decline()
  }

  /// Does nothing.
  public func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) { DelegateCall.lacksMethod() }

  /// The file's sender gets `deliveryFailed`.
  public func session(_ session: WCSession, didReceive file: WCSessionFile) {
    DelegateCall.decline()
  }

  /// Does nothing.
  public func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) { DelegateCall.lacksMethod() }
}

extension WCSession {
  /// The outcome of calling the delegate.
  enum Offer {
    case handled
    /// The delegate has no method for it: the default implementation reported that.
    case declined
    case noDelegate
  }

  /// Calls the delegate; on the session's queue only.
  func offer(_ call: (any WCSessionDelegate) -> Void) -> Offer {
    dispatchPrecondition(condition: .onQueue(queue))
    guard let delegate else { return .noDelegate }
    return withDefault { DelegateCall.isDeclined { call(delegate) } ? .declined : .handled }
  }

  /// Calls the delegate where the outcome does not matter; on the session's queue only.
  func notify(_ call: (any WCSessionDelegate) -> Void) {
    _ = offer(call)
  }
}
