public import Foundation
import Synchronization

// Apple's delegate has optional methods, called as `delegate.session?(…)`. Swift on Linux has none,
// so a property with the same name replaces each.
extension WCSessionDelegate {
  /// The methods named `session`, for code that calls them as optional ones, such as a delegate
  /// that forwards its calls: `other?.session?(session, didReceiveMessage: message)`.
  ///
  /// Never nil; a call without such a method is. A property `session` of the app comes first.
  @_disfavoredOverload
  public var session: WCSessionDelegateMethods? { WCSessionDelegateMethods(delegate: self) }

  /// The method of this name, for code that calls it as an optional one; never nil.
  public var sessionWatchStateDidChange: ((WCSession) -> Void?)? {
    { session in DelegateCall.result { self.sessionWatchStateDidChange(session) } }
  }

  /// The method of this name, for code that calls it as an optional one; never nil.
  public var sessionCompanionAppInstalledDidChange: ((WCSession) -> Void?)? {
    { session in DelegateCall.result { self.sessionCompanionAppInstalledDidChange(session) } }
  }

  /// The method of this name, for code that calls it as an optional one; never nil.
  public var sessionReachabilityDidChange: ((WCSession) -> Void?)? {
    { session in DelegateCall.result { self.sessionReachabilityDidChange(session) } }
  }
}

/// A delegate's methods named `session`, as optional ones: each call returns nil, with no effect,
/// if the delegate does not have the method.
///
/// ```swift
/// func pass(_ message: [String: Any], from session: WCSession, to other: (any WCSessionDelegate)?) {
///   if other?.session?(session, didReceiveMessage: message) == nil { print("it has no such method") }
/// }
/// ```
public struct WCSessionDelegateMethods {
  let delegate: any WCSessionDelegate

  /// See `session(_:didReceiveMessage:)`.
  @discardableResult
  public func callAsFunction(
    _ session: WCSession, didReceiveMessage message: [String: Any]
  ) -> Void? {
    DelegateCall.result { delegate.session(session, didReceiveMessage: message) }
  }

  /// See `session(_:didReceiveMessage:replyHandler:)`.
  @discardableResult
  public func callAsFunction(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) -> Void? {
    let handler = PassedHandler(call: replyHandler)
    return DelegateCall.result {
      delegate.session(session, didReceiveMessage: message) { handler.call($0) }
    }
  }

  /// See `session(_:didReceiveMessageData:)`.
  @discardableResult
  public func callAsFunction(
    _ session: WCSession, didReceiveMessageData messageData: Data
  ) -> Void? {
    DelegateCall.result { delegate.session(session, didReceiveMessageData: messageData) }
  }

  /// See `session(_:didReceiveMessageData:replyHandler:)`.
  @discardableResult
  public func callAsFunction(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping (Data) -> Void
  ) -> Void? {
    let handler = PassedHandler(call: replyHandler)
    return DelegateCall.result {
      delegate.session(session, didReceiveMessageData: messageData) { handler.call($0) }
    }
  }

  /// See `session(_:didReceiveApplicationContext:)`.
  @discardableResult
  public func callAsFunction(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) -> Void? {
    DelegateCall.result {
      delegate.session(session, didReceiveApplicationContext: applicationContext)
    }
  }

  /// See `session(_:didReceiveUserInfo:)`.
  @discardableResult
  public func callAsFunction(
    _ session: WCSession, didReceiveUserInfo userInfo: [String: Any]
  ) -> Void? {
    DelegateCall.result { delegate.session(session, didReceiveUserInfo: userInfo) }
  }

  /// See `session(_:didFinish:error:)`.
  @discardableResult
  public func callAsFunction(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) -> Void? {
    DelegateCall.result { delegate.session(session, didFinish: userInfoTransfer, error: error) }
  }

  /// See `session(_:didReceive:)`.
  @discardableResult
  public func callAsFunction(_ session: WCSession, didReceive file: WCSessionFile) -> Void? {
    DelegateCall.result { delegate.session(session, didReceive: file) }
  }

  /// See `session(_:didFinish:error:)`.
  @discardableResult
  public func callAsFunction(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) -> Void? {
    DelegateCall.result { delegate.session(session, didFinish: fileTransfer, error: error) }
  }
}

/// A reply handler of Apple's type, which declares no isolation, on its way to a delegate.
// The handler that the session gives may be called on any thread. A handler that wraps it for
// another delegate is called where that delegate replies, as on Apple's systems.
private struct PassedHandler<Reply>: @unchecked Sendable {
  let call: (Reply) -> Void
}

/// The call of a delegate's method that is running on this thread.
///
/// Only a method's default implementation knows, and reports, that the delegate lacks the method.
final class DelegateCall: Sendable {
  private enum Finding: Int, AtomicRepresentable { case none, missing, declined }

  @TaskLocal private static var current: DelegateCall?

  private let finding = Atomic(Finding.none)

  /// Calls a method of the session's delegate.
  ///
  /// - Returns: whether the delegate lacks a method for an arrival.
  static func isDeclined(_ call: () -> Void) -> Bool { run(call) == .declined }

  /// Calls an optional method.
  ///
  /// - Returns: nil if the delegate does not have the method.
  static func result(_ call: () -> Void) -> Void? { run(call) == .none ? () : nil }

  /// The delegate lacks this method, and loses nothing by it.
  static func lacksMethod() { current?.finding.store(.missing, ordering: .relaxed) }

  /// The delegate lacks a method for an arrival.
  static func decline() { current?.finding.store(.declined, ordering: .relaxed) }

  private static func run(_ call: () -> Void) -> Finding {
    let this = DelegateCall()
    $current.withValue(this) { call() }
    return this.finding.load(ordering: .relaxed)
  }
}
