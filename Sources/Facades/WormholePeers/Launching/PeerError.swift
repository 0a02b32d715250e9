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
  public struct Code: ErrorCode {
    /// Its name.
    public let rawValue: String
    /// Creates a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// No process answers requests under that name, or the process ended before its answer.
    public static let unreachable = Self("unreachable")
    /// The time for the answer passed; the peer may have handled the request, or be stopped.
    public static let timedOut = Self("timedOut")
    /// The caller's task or the call was cancelled.
    public static let cancelled = Self("cancelled")
    /// The peer's handler threw or refused, and `reason` holds its message; or its answer could not
    /// be delivered, and `reason` says why.
    public static let failed = Self("failed")
    /// The peer has no handler for requests.
    public static let notHandled = Self("notHandled")
    /// The peer's handler released the request without an answer.
    public static let notAnswered = Self("notAnswered")
    /// The session is not active, or was closed.
    public static let notActive = Self("notActive")
    /// Another process is active under this name now.
    public static let replaced = Self("replaced")
    /// The peer's queue or mailbox has reached its limits.
    public static let queueFull = Self("queueFull")
    /// The value is larger than a peer would accept.
    public static let tooLarge = Self("tooLarge")
    /// The value is not a valid property list, or the name is not valid for a peer.
    public static let unsupportedValue = Self("unsupportedValue")
    /// A value arrived that does not have the expected type.
    public static let unexpectedValue = Self("unexpectedValue")
    /// The file cannot be read, or is a directory, link or device.
    public static let fileAccess = Self("fileAccess")
    /// The content differs from the content that was sent.
    public static let damaged = Self("damaged")
    /// The peer could not be started.
    public static let notLaunched = Self("notLaunched")
    /// The disk, its inodes or the user's quota are used up.
    public static let noSpace = Self("noSpace")
    /// Any other failure; `underlying` has more.
    public static let inputOutput = Self("inputOutput")
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
