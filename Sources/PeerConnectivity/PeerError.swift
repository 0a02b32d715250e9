public import AppGroup

/// Why something between peers could not be done: what failed, for which peer, why, who is in the
/// way, and what to do.
public struct PeerError: Error, Sendable {
  /// The kind of failure.
  public enum Code: String, Sendable, Hashable {
    /// Nobody answers requests under that name, or whoever did ended before the answer.
    case unreachable
    /// The time for the answer passed; the peer may have handled the request, or be stopped.
    case timedOut
    /// The caller's task was cancelled, or the call.
    case cancelled
    /// The peer's handler threw, or refused; `reason` is what it said.
    case failed
    /// The peer has no handler for requests.
    case notHandled
    /// The peer's handler let the request go without an answer.
    case notAnswered
    /// The session is not active, or was invalidated.
    case notActive
    /// Another process is active under this name now.
    case replaced
    /// As much as its limits allow waits for the peer already.
    case queueFull
    /// The value is larger than a peer would accept.
    case tooLarge
    /// The value cannot be a property list, or the name cannot be a peer's.
    case unsupportedValue
    /// A value came that is not of the type that was expected.
    case unexpectedValue
    /// The file cannot be read, or is no regular file.
    case fileAccess
    /// The file's content is not what its sender sent.
    case damaged
    /// The peer could not be started.
    case notLaunched
    /// The disk, its inodes or the user's quota are used up.
    case noSpace
    /// Any other failure; `underlying` has more.
    case inputOutput
  }

  /// The kind of failure.
  public let code: Code
  /// What was being done, as a verb with its object.
  public let action: String
  /// The other peer.
  public let peer: String?
  /// Why it failed.
  public let reason: String
  /// What the user can do about it, if there is anything.
  public let remedy: String?
  /// The process in the way.
  public let holder: LeaseHolder?
  /// What the container refused, if it did.
  public let underlying: AppGroupError?

  init(
    _ code: Code, _ action: String, peer: String? = nil, reason: String, remedy: String? = nil,
    holder: LeaseHolder? = nil, underlying: AppGroupError? = nil
  ) {
    self.code = code
    self.action = action
    self.peer = peer
    self.reason = reason
    self.remedy = remedy
    self.holder = holder
    self.underlying = underlying
  }
}

extension PeerError: CustomStringConvertible {
  /// One sentence: "cannot ACTION: REASON; REMEDY".
  public var description: String {
    "cannot \(action): \(reason)" + (remedy.map { "; \($0)" } ?? "")
  }
}
