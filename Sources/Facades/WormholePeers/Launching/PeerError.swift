public import Wormhole

/// An action between peers has failed.
///
/// ```swift
/// let till = try PeerSession("till", in: container)
/// do {
///   print(try await till.request([7, 8], to: "phone"))
/// } catch let error as PeerError where error.code == .unreachable {
///   try await till.enqueue([7, 8], to: "phone")     // it gets them when it is there
/// }
/// ```
public struct PeerError: DescribedError {
  /// The kind of failure.
  ///
  /// ```swift
  /// do {
  ///   try PeerSession("till", in: container).send(["seat": 7], to: "phone")
  /// } catch let error as PeerError where [.unreachable, .timedOut].contains(error.code) {
  ///   print("later: \(error)")
  /// }
  /// ```
  #if hasAttribute(nonexhaustive)
    @nonexhaustive
  #endif
  public enum Code: String, Sendable, Hashable {
    /// No process answers requests under that name, or the one that did ended before the answer.
    case unreachable
    /// The time for the answer passed; the peer may have handled the request, or be stopped.
    case timedOut
    /// The caller's task was cancelled, or the call.
    case cancelled
    /// The peer's handler threw or refused, and `reason` has its words; or its answer could not be delivered,
    /// and `reason` says why.
    case failed
    /// The peer has no handler for requests.
    case notHandled
    /// The peer's handler let the request go without an answer.
    case notAnswered
    /// The session is not active, or was closed.
    case notActive
    /// Another process is active under this name now.
    case replaced
    /// The limits of the peer's queue or mailbox are reached.
    case queueFull
    /// The value is larger than a peer would accept.
    case tooLarge
    /// The value cannot be a property list, or the name cannot be a peer's.
    case unsupportedValue
    /// A value came that is not of the type that was expected.
    case unexpectedValue
    /// The file cannot be read, or is no regular file.
    case fileAccess
    /// The content differs from the one that was sent.
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
  /// The parts of the sentence.
  public let failure: FailureDescription
  /// The other peer.
  public let peer: String?
  /// The error of the container, if there was one.
  public let underlying: AppGroupError?

  package init(
    _ code: Code, _ action: String, peer: String? = nil, reason: String, remedy: String? = nil,
    holder: LeaseHolder? = nil, underlying: AppGroupError? = nil
  ) {
    self.code = code
    failure = FailureDescription(action, reason: reason, remedy: remedy, holder: holder)
    self.peer = peer
    self.underlying = underlying
  }
}
