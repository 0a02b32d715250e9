import Wormhole
import WormholePeers

/// The table from errors between peers to errors of a session.
extension WCError {
  /// The attempt that failed: a deadline that passed has a different meaning for each.
  enum Attempt {
    case activation
    case message(expectsReply: Bool)
    case transfer
  }

  /// The session's error for an error of the layers below.
  init(_ error: any Error, of attempt: Attempt) {
    switch error {
    case let error as WCError: self = error
    // Only a session that becomes inactive cancels its calls.
    case let error as PeerError where error.code == .cancelled:
      self.init(.sessionInactive, reason: nil, underlying: error)
    case let error as PeerError:
      self.init(
        Self.code(of: error.code, attempt), reason: Self.sentence(error), underlying: error)
    case let error as AppGroupError:
      let code: Code = error.code == .noSpace ? .insufficientSpace : .genericError
      self.init(code, reason: "\(error)", underlying: error)
    case is CancellationError: self.init(.sessionInactive)
    default: self.init(.genericError, reason: "\(error)", underlying: error)
    }
  }

  private static func code(of code: PeerError.Code, _ attempt: Attempt) -> Code {
    switch code {
    case .unreachable, .notLaunched: .notReachable
    case .timedOut: codeOfTimeout(attempt)
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

  private static func codeOfTimeout(_ attempt: Attempt) -> Code {
    switch attempt {
    case .activation: .sessionNotActivated
    case .message(let expectsReply): expectsReply ? .messageReplyTimedOut : .transferTimedOut
    case .transfer: .transferTimedOut
    }
  }

  private static func sentence(_ error: PeerError) -> String {
    let text = "\(error)"
    return text.prefix(1).uppercased() + text.dropFirst() + "."
  }
}
