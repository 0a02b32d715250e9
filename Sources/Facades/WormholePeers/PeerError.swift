public import Wormhole
import WormholePropertyLists
import WormholeToolkit

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
    errorNumber: Int32? = nil, holder: LeaseHolder? = nil, underlying: AppGroupError? = nil
  ) {
    self.code = code
    failure = FailureDescription(
      action, reason: reason, remedy: remedy, errorNumber: errorNumber, holder: holder)
    self.peer = peer
    self.underlying = underlying
  }

  /// Whether a call that failed with an error of any layer may succeed later.
  package static func mayPass(_ error: any Error) -> Bool {
    PeerError(any: error, "end the delivery").mayPass
  }

  /// Whether the same call may succeed later: it lacked space or descriptors, or etcd did not answer.
  package var mayPass: Bool {
    [.noSpace, .tooManyOpenFiles, .unreachable, .outcomeUnknown].contains(underlying?.code)
  }
}

extension PeerError {
  init(_ error: AppGroupError, _ action: String, peer: String? = nil) {
    let place = error.path.isEmpty ? "" : " (\(error.path))"
    self.init(
      Self.code(of: error), action, peer: peer, reason: error.reason + place,
      remedy: error.remedy, holder: error.holder, underlying: error)
  }

  private static func code(of error: AppGroupError) -> Code {
    switch error.code {
    case .damaged: .damaged
    case .tooLarge: .tooLarge
    case .unsupportedValue: .unsupportedValue
    case .leaseLost: .replaced
    case .timedOut, .outcomeUnknown: .timedOut
    case .unreachable: .unreachable
    case .queueFull: .queueFull
    case .noSpace: .noSpace
    case .invalidToken: .notActive
    default: .inputOutput
    }
  }

  /// A value that no peer would accept.
  init(_ error: PropertyListError, _ action: String, peer: String? = nil) {
    self.init(
      error.code.isOfSize ? .tooLarge : .unsupportedValue, action, peer: peer,
      reason: "no peer would accept it: \(error.reason)",
      remedy: "messages between peers are meant to be small; send large content as a file")
  }

  /// Any error as an error between peers; one that already is one is returned unchanged.
  package init(any error: any Error, _ action: String, peer: String? = nil) {
    switch error {
    case let error as PeerError: self = error
    case let error as AppGroupError: self.init(error, action, peer: peer)
    case let error as PropertyListError: self.init(error, action, peer: peer)
    case is CancellationError:
      self.init(.cancelled, action, peer: peer, reason: "the task was cancelled")
    case is EncodingError:
      self.init(.unsupportedValue, action, peer: peer, reason: "it cannot be encoded: \(error)")
    default: self.init(.inputOutput, action, peer: peer, reason: "\(error)")
    }
  }
}

/// Runs a call between peers; errors of the container become errors between peers.
package func betweenPeers<Result>(
  _ action: @autoclosure () -> String, _ peer: String? = nil, _ body: () throws -> Result
) throws(PeerError) -> Result {
  do {
    return try body()
  } catch {
    throw PeerError(any: error, action(), peer: peer)
  }
}

package func betweenPeers<Result: Sendable>(
  _ action: @autoclosure () -> String, _ peer: String? = nil, _ body: () async throws -> Result
) async throws(PeerError) -> Result {
  do {
    return try await body()
  } catch {
    throw PeerError(any: error, action(), peer: peer)
  }
}

extension PeerError {
  /// A request to a peer has ended without its answer.
  static func asking(
    _ peer: String, _ code: Code, _ reason: String, remedy: String? = nil,
    holder: LeaseHolder? = nil
  ) -> PeerError {
    PeerError(code, "ask \"\(peer)\"", peer: peer, reason: reason, remedy: remedy, holder: holder)
  }

  static func cancelled(_ peer: String) -> PeerError {
    asking(peer, .cancelled, "its caller has cancelled it")
  }

  static func unreachable(_ peer: String, _ reason: String) -> PeerError {
    asking(peer, .unreachable, reason, remedy: "start it, or register how it is to be started")
  }

  static func timedOut(_ peer: String, _ reachability: PeerReachability?) -> PeerError {
    asking(
      peer, .timedOut,
      "no answer came in time: \(reachability?.reason ?? "the reason is not known")",
      remedy: "it may have handled the request, or may still do so", holder: reachability?.holder)
  }

  static func replaced(_ name: String, _ holder: LeaseHolder?) -> PeerError {
    PeerError(
      .replaced, "be active as \"\(name)\"",
      reason: "\(holder.map { "\($0)," } ?? "another process") is active under that name",
      remedy: "activate again when it has ended", holder: holder)
  }

  static func notActive(_ name: String) -> PeerError {
    PeerError(
      .notActive, "be active as \"\(name)\"", reason: "the session is not active",
      remedy: "activate it")
  }
}

typealias PeerResult = Result<PropertyListValue, PeerError>

extension PeerResult {
  /// - Parameter container: where the peer would be reached: for a call that has timed out.
  init(_ end: CallEnd, _ peer: String, in container: SharedContainer) {
    switch end {
    case .answered(.reply(let value)): self = .success(value)
    case .answered(.failure(let code, let reason, _)):
      // The codes that a peer may use; any other is just a failure.
      let codes: [PeerError.Code] = [
        .notHandled, .notAnswered, .unreachable, .queueFull, .unexpectedValue,
      ]
      let code = codes.first { $0.rawValue == code } ?? .failed
      self = .failure(.asking(peer, code, reason))
    case .timedOut:
      // The request is late even if this process cannot find out why.
      let reachability = try? PeerReachability.of(peer, in: container.limited(until: .now))
      self = .failure(.timedOut(peer, reachability))
    case .cancelled: self = .failure(.cancelled(peer))
    case .closed:
      self = .failure(.asking(peer, .cancelled, "the session was closed meanwhile"))
    case .died: self = .failure(.unreachable(peer, "it has ended"))
    case .failed(let error):
      self = .failure(PeerError(any: error, "ask \"\(peer)\"", peer: peer))
    }
  }
}

extension PropertyListValue {
  /// A value that a peer sent, decoded as a type of the program; throws `unexpectedValue`.
  func decoded<Content: Decodable>(
    as type: Content.Type, _ action: @autoclosure () -> String, from peer: String
  ) throws(PeerError) -> Content {
    do {
      return try decode(as: type)
    } catch {
      throw PeerError(
        .unexpectedValue, action(), peer: peer, reason: "it is not of the type \(type): \(error)",
        remedy: "agree with the peer on the type that is sent")
    }
  }
}
