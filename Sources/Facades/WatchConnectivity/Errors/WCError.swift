public import Foundation
import Wormhole
import WormholePeers

// Apple's name, capital included.
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The domain of `WCError` as an `NSError`.
public let WCErrorDomain = "WCErrorDomain"

/// Why a session could not do something.
///
/// As with Apple's type, `catch WCError.notReachable`, `(error as? WCError)?.code`,
/// `(error as NSError).code` and `localizedDescription` all work. `failureReason` says more than
/// Apple's: the obstacle and the remedy.
///
/// ```swift
/// WCSession.default.sendMessage(["seats": [7, 8]], replyHandler: nil) { error in
///   if case WCError.notReachable = error { print("later") }
///   if let reason = (error as? WCError)?.failureReason { print(reason) }
/// }
/// ```
public struct WCError: Error, Sendable {
  /// The kind of failure; the numbers are Apple's.
  ///
  /// ```swift
  /// func isWorthARetry(_ error: WCError) -> Bool { [.notReachable, .deliveryFailed].contains(error.code) }
  /// ```
  public enum Code: Int, Sendable, Hashable {
    /// A failure without a code of its own.
    case genericError = 7001
    /// Neither the environment nor `WCSession.configure` says where the session is, or its
    /// container cannot be used.
    case sessionNotSupported = 7002
    /// There is no delegate.
    case sessionMissingDelegate = 7003
    /// The session is not activated.
    case sessionNotActivated = 7004
    /// No watch is paired with the phone, or not this one.
    case deviceNotPaired = 7005
    /// The active watch is paired but does not have the app.
    case watchAppNotInstalled = 7006
    /// The counterpart is not running, is stopped, or ended before it answered.
    case notReachable = 7007
    /// The URL does not name a file.
    case invalidParameter = 7008
    /// The binary property list of the payload is larger than its limit.
    case payloadTooLarge = 7009
    /// The payload holds something that a property list cannot hold.
    case payloadUnsupportedTypes = 7010
    /// The counterpart's reply was not a property list, or too large.
    case messageReplyFailed = 7011
    /// The counterpart did not reply in time, or released its reply handler.
    case messageReplyTimedOut = 7012
    /// The file cannot be read, or is a directory, link or device.
    case fileAccessDenied = 7013
    /// The counterpart has no method for it, or could not take it.
    case deliveryFailed = 7014
    /// The disk or the counterpart's queue is full.
    case insufficientSpace = 7015
    /// The session is switching to another watch.
    case sessionInactive = 7016
    /// The counterpart did not take it in time.
    case transferTimedOut = 7017
    /// On a watch: the phone does not have the app.
    case companionAppNotInstalled = 7018
    /// Never used here; the code exists for `switch` statements that name it.
    case watchOnlyApp = 7019
  }

  /// The kind of failure.
  public let code: Code
  /// The obstacle and the remedy, as a sentence; nil if the code is enough.
  public let failureReason: String?
  /// The cause, as an error of another module.
  public let underlying: (any Error)?

  /// Makes an error with a code, for tests.
  ///
  /// - Parameters:
  ///   - code: What failed.
  ///   - userInfo: Its failure reason and underlying error are kept, under Foundation's keys.
  public init(_ code: Code, userInfo: [String: Any] = [:]) {
    self.init(
      code, reason: userInfo[NSLocalizedFailureReasonErrorKey] as? String,
      underlying: userInfo[NSUnderlyingErrorKey] as? any Error)
  }

  init(_ code: Code, reason: String?, underlying: (any Error)? = nil) {
    self.code = code
    failureReason = reason
    self.underlying = underlying
  }
}

extension WCError: CustomNSError, LocalizedError {
  /// `WCErrorDomain`.
  public static var errorDomain: String { WCErrorDomain }

  /// The code's number.
  public var errorCode: Int { code.rawValue }

  /// The description, the reason, and the underlying error, under Foundation's keys.
  public var errorUserInfo: [String: Any] {
    var info: [String: Any] = [NSLocalizedDescriptionKey: code.sentence]
    if let failureReason { info[NSLocalizedFailureReasonErrorKey] = failureReason }
    if let underlying { info[NSUnderlyingErrorKey] = underlying }
    return info
  }

  /// `errorUserInfo`, under Apple's name.
  public var userInfo: [String: Any] { errorUserInfo }

  /// One sentence for people.
  public var errorDescription: String? { code.sentence }
}

extension WCError: Hashable {
  /// Errors are equal when their codes and reasons are.
  public static func == (one: WCError, other: WCError) -> Bool {
    one.code == other.code && one.failureReason == other.failureReason
  }

  /// Hashes the code and the reason.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(code)
    hasher.combine(failureReason)
  }
}

extension WCError: CustomStringConvertible {
  /// The code's name, its sentence, and the reason.
  public var description: String {
    "WCError \(code.rawValue) \(code): \(code.sentence)" + (failureReason.map { " \($0)" } ?? "")
  }
}

extension WCError.Code {
  /// Lets `catch WCError.notReachable` and `case WCError.notReachable:` match an error.
  public static func ~= (code: WCError.Code, error: any Error) -> Bool {
    (error as? WCError)?.code == code
  }

  var sentence: String {
    switch self {
    case .genericError: "Something went wrong."
    case .sessionNotSupported: "Watch Connectivity sessions are not supported here."
    case .sessionMissingDelegate: "The session has no delegate."
    case .sessionNotActivated: "The session has not been activated."
    case .deviceNotPaired: "There is no paired device."
    case .watchAppNotInstalled: "The app is not installed on the watch."
    case .notReachable: "The counterpart app is not reachable."
    case .invalidParameter: "A parameter is not valid."
    case .payloadTooLarge: "The payload is too large."
    case .payloadUnsupportedTypes: "The payload contains types that a property list cannot hold."
    case .messageReplyFailed: "The reply to the message could not be returned."
    case .messageReplyTimedOut: "Message reply took too long."
    case .fileAccessDenied: "The file cannot be accessed."
    case .deliveryFailed: "Payload could not be delivered."
    case .insufficientSpace: "There is not enough space for it."
    case .sessionInactive: "The session is inactive."
    case .transferTimedOut: "The transfer took too long."
    case .companionAppNotInstalled: "The companion app is not installed."
    case .watchOnlyApp: "The app is for the watch only."
    }
  }
}

// Each code is also a member of the error type, as with Apple's: `WCError.notReachable`.
extension WCError {
  /// See `Code.genericError`.
  public static var genericError: Code { .genericError }
  /// See `Code.sessionNotSupported`.
  public static var sessionNotSupported: Code { .sessionNotSupported }
  /// See `Code.sessionMissingDelegate`.
  public static var sessionMissingDelegate: Code { .sessionMissingDelegate }
  /// See `Code.sessionNotActivated`.
  public static var sessionNotActivated: Code { .sessionNotActivated }
  /// See `Code.deviceNotPaired`.
  public static var deviceNotPaired: Code { .deviceNotPaired }
  /// See `Code.watchAppNotInstalled`.
  public static var watchAppNotInstalled: Code { .watchAppNotInstalled }
  /// See `Code.notReachable`.
  public static var notReachable: Code { .notReachable }
  /// See `Code.invalidParameter`.
  public static var invalidParameter: Code { .invalidParameter }
  /// See `Code.payloadTooLarge`.
  public static var payloadTooLarge: Code { .payloadTooLarge }
  /// See `Code.payloadUnsupportedTypes`.
  public static var payloadUnsupportedTypes: Code { .payloadUnsupportedTypes }
  /// See `Code.messageReplyFailed`.
  public static var messageReplyFailed: Code { .messageReplyFailed }
  /// See `Code.messageReplyTimedOut`.
  public static var messageReplyTimedOut: Code { .messageReplyTimedOut }
  /// See `Code.fileAccessDenied`.
  public static var fileAccessDenied: Code { .fileAccessDenied }
  /// See `Code.deliveryFailed`.
  public static var deliveryFailed: Code { .deliveryFailed }
  /// See `Code.insufficientSpace`.
  public static var insufficientSpace: Code { .insufficientSpace }
  /// See `Code.sessionInactive`.
  public static var sessionInactive: Code { .sessionInactive }
  /// See `Code.transferTimedOut`.
  public static var transferTimedOut: Code { .transferTimedOut }
  /// See `Code.companionAppNotInstalled`.
  public static var companionAppNotInstalled: Code { .companionAppNotInstalled }
  /// See `Code.watchOnlyApp`.
  public static var watchOnlyApp: Code { .watchOnlyApp }
}

/// The table from errors between peers to a session's errors.
extension WCError {
  /// The attempt that failed: a passed deadline means something different for each.
  enum Attempt {
    case activation
    case message(expectsReply: Bool)
    case transfer
  }

  /// The session's error for an error of a lower layer.
  init(_ error: any Error, of attempt: Attempt) {
    switch error {
    case let error as WCError: self = error
    // Only a session that becomes inactive cancels its calls.
    case let error as WormholeError where error.code == .cancelled:
      self.init(.sessionInactive, reason: nil, underlying: error)
    case let error as WormholeError:
      self.init(
        Self.code(of: error.code, attempt), reason: Self.sentence("\(error)"), underlying: error)
    case is CancellationError: self.init(.sessionInactive)
    default: self.init(.genericError, reason: "\(error)", underlying: error)
    }
  }

  private static func code(of code: WormholeError.Code, _ attempt: Attempt) -> Code {
    switch code {
    case .unreachable, .clusterUnreachable, .notLaunched: .notReachable
    case .timedOut, .outcomeUnknown:
      switch attempt {
      case .activation: .sessionNotActivated
      case .message(expectsReply: true): .messageReplyTimedOut
      case .message(expectsReply: false), .transfer: .transferTimedOut
      }
    case .cancelled: .sessionInactive
    // The counterpart's session fails a request only when it cannot return the reply.
    case .failed: .messageReplyFailed
    case .notHandled, .damaged: .deliveryFailed
    case .notAnswered: .messageReplyTimedOut
    case .notActive, .replaced: .sessionNotActivated
    case .queueFull, .noSpace: .insufficientSpace
    case .tooLarge: .payloadTooLarge
    case .unsupportedValue, .unexpectedValue: .payloadUnsupportedTypes
    case .fileAccess: .fileAccessDenied
    default: .genericError
    }
  }

  static func sentence(_ text: String) -> String {
    text.prefix(1).uppercased() + text.dropFirst() + "."
  }
}
