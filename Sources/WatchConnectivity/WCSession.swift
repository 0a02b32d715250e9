public import AppGroup
public import Foundation

/// The session between a phone process and a watch process.
open class WCSession: NSObject, @unchecked Sendable {
  /// Which of the two a process is.
  public enum Role: String, Sendable {
    case phone
    case watch
  }

  /// Says where the session is and which side this process is; once, before the session is used.
  /// Without this the environment says it.
  public static func configure(role: Role, container: SharedContainer, watchName: String = "watch")
  {
    preconditionFailure("unbuilt")
  }

  public static func isSupported() -> Bool { preconditionFailure("unbuilt") }
  public static var `default`: WCSession { preconditionFailure("unbuilt") }

  public weak var delegate: (any WCSessionDelegate)?
  public func activate() { preconditionFailure("unbuilt") }
  public var activationState: WCSessionActivationState { preconditionFailure("unbuilt") }
  public var hasContentPending: Bool { preconditionFailure("unbuilt") }
  public var isPaired: Bool { preconditionFailure("unbuilt") }
  public var isWatchAppInstalled: Bool { preconditionFailure("unbuilt") }
  public var isCompanionAppInstalled: Bool { preconditionFailure("unbuilt") }
  public var isComplicationEnabled: Bool { preconditionFailure("unbuilt") }
  public var iOSDeviceNeedsUnlockAfterRebootForReachability: Bool { false }
  public var remainingComplicationUserInfoTransfers: Int { preconditionFailure("unbuilt") }
  public var watchDirectoryURL: URL? { preconditionFailure("unbuilt") }
  public var isReachable: Bool { preconditionFailure("unbuilt") }

  public func sendMessage(
    _ message: [String: Any], replyHandler: (([String: Any]) -> Void)?,
    errorHandler: ((any Error) -> Void)? = nil
  ) { preconditionFailure("unbuilt") }
  public func sendMessageData(
    _ data: Data, replyHandler: ((Data) -> Void)?, errorHandler: ((any Error) -> Void)? = nil
  ) { preconditionFailure("unbuilt") }

  public var applicationContext: [String: Any] { preconditionFailure("unbuilt") }
  public var receivedApplicationContext: [String: Any] { preconditionFailure("unbuilt") }
  public func updateApplicationContext(_ applicationContext: [String: Any]) throws {
    preconditionFailure("unbuilt")
  }

  @discardableResult
  public func transferUserInfo(_ userInfo: [String: Any] = [:]) -> WCSessionUserInfoTransfer {
    preconditionFailure("unbuilt")
  }
  @discardableResult
  public func transferCurrentComplicationUserInfo(
    _ userInfo: [String: Any] = [:]
  ) -> WCSessionUserInfoTransfer { preconditionFailure("unbuilt") }
  public var outstandingUserInfoTransfers: [WCSessionUserInfoTransfer] {
    preconditionFailure("unbuilt")
  }

  @discardableResult
  public func transferFile(_ file: URL, metadata: [String: Any]?) -> WCSessionFileTransfer {
    preconditionFailure("unbuilt")
  }
  public var outstandingFileTransfers: [WCSessionFileTransfer] { preconditionFailure("unbuilt") }
}

/// A guaranteed dictionary on its way.
open class WCSessionUserInfoTransfer: NSObject {
  open var userInfo: [String: Any] { preconditionFailure("unbuilt") }
  open var isTransferring: Bool { preconditionFailure("unbuilt") }
  open var isCurrentComplicationInfo: Bool { preconditionFailure("unbuilt") }
  open func cancel() { preconditionFailure("unbuilt") }
}

/// A file on its way.
open class WCSessionFileTransfer: NSObject {
  open var file: WCSessionFile { preconditionFailure("unbuilt") }
  open var progress: Progress { preconditionFailure("unbuilt") }
  open var isTransferring: Bool { preconditionFailure("unbuilt") }
  open func cancel() { preconditionFailure("unbuilt") }
}

/// A file that is sent or came.
open class WCSessionFile: NSObject {
  open var fileURL: URL { preconditionFailure("unbuilt") }
  open var metadata: [String: Any]? { preconditionFailure("unbuilt") }
}

/// The domain of `WCError` as an `NSError`.
public let WCErrorDomain = "WCErrorDomain"

/// Why a session could not do something.
public struct WCError: CustomNSError, Hashable, Sendable {
  public enum Code: Int, Sendable {
    case genericError = 7001
    case sessionNotSupported, sessionMissingDelegate, sessionNotActivated, deviceNotPaired
    case watchAppNotInstalled, notReachable, invalidParameter, payloadTooLarge
    case payloadUnsupportedTypes, messageReplyFailed, messageReplyTimedOut, fileAccessDenied
    case deliveryFailed, insufficientSpace, sessionInactive, transferTimedOut
    case companionAppNotInstalled, watchOnlyApp
  }
  public let code: Code
  public init(_ code: Code) { self.code = code }
  public static var errorDomain: String { WCErrorDomain }
  public var errorCode: Int { code.rawValue }
}
