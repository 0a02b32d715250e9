public import Wormhole
import WormholePropertyLists
import WormholeToolkit

/// The codes of actions between peers.
///
/// ```swift
/// let till = try PeerSession("till", in: container)
/// do {
///   print(try await till.request([7, 8], to: "phone"))
/// } catch let error as WormholeError where error.code == .unreachable {
///   try await till.enqueue([7, 8], to: "phone")     // it gets them when it is there
/// }
/// ```
extension WormholeError.Code {
  /// No process answers requests under that name, or the process ended before its answer.
  public static let unreachable = Self("unreachable")
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
  /// A value arrived that does not have the expected type.
  public static let unexpectedValue = Self("unexpectedValue")
  /// The file cannot be read, or is a directory, link or device.
  public static let fileAccess = Self("fileAccess")
  /// The peer could not be started.
  public static let notLaunched = Self("notLaunched")
}

extension WormholeError {
  /// Whether a call that failed with an error of any layer may succeed later.
  package static func maySucceedLater(_ error: any Error) -> Bool {
    (error as? WormholeError)?.maySucceedLater ?? false
  }

  /// Whether the same call may succeed later: it lacked space or descriptors, or etcd did not answer.
  package var maySucceedLater: Bool {
    [.noSpace, .tooManyOpenFiles, .clusterUnreachable, .outcomeUnknown].contains(code)
  }

  /// Whether it is of an action between peers, which concerns no file of the container.
  package var isBetweenPeers: Bool { path.isEmpty }

  /// Any error as that of an action between peers.
  package init(any error: any Error, _ action: String, peer: String? = nil) {
    switch error {
    case let error as WormholeError:
      self = error
      guard !isBetweenPeers else { return }
      (self.action, self.peer) = (action, peer)
      (reason, path) = (reason + place, "")
      switch code {
      case .leaseLost: code = .replaced
      case .invalidToken: code = .notActive
      default: break
      }
    case let error as PropertyListError:
      self.init(
        error.code.isOfSize ? .tooLarge : .unsupportedValue, action, peer: peer,
        reason: "no peer would accept it: \(error.reason)",
        remedy: "messages between peers are meant to be small; send large content as a file")
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
) throws(WormholeError) -> Result {
  do {
    return try body()
  } catch {
    throw WormholeError(any: error, action(), peer: peer)
  }
}

package func betweenPeers<Result: Sendable>(
  _ action: @autoclosure () -> String, _ peer: String? = nil, _ body: () async throws -> Result
) async throws(WormholeError) -> Result {
  do {
    return try await body()
  } catch {
    throw WormholeError(any: error, action(), peer: peer)
  }
}

extension WormholeError {
  /// A request to a peer has ended without its answer.
  static func asking(
    _ peer: String, _ code: Code, _ reason: String, remedy: String? = nil,
    holder: LeaseHolder? = nil
  ) -> WormholeError {
    WormholeError(
      code, "ask \"\(peer)\"", peer: peer, reason: reason, remedy: remedy, holder: holder)
  }

  /// - Parameter error: of any layer. If the outcome of sending is unknown, the answer is late.
  static func asking(_ peer: String, failed error: any Error) -> WormholeError {
    var error = WormholeError(any: error, "ask \"\(peer)\"", peer: peer)
    if error.code == .outcomeUnknown { error.code = .timedOut }
    return error
  }

  static func cancelled(_ peer: String) -> WormholeError {
    asking(peer, .cancelled, "its caller has cancelled it")
  }

  static func unreachable(_ peer: String, _ reason: String) -> WormholeError {
    asking(peer, .unreachable, reason, remedy: "start it, or register how it is to be started")
  }

  static func timedOut(_ peer: String, _ reachability: PeerReachability?) -> WormholeError {
    asking(
      peer, .timedOut,
      "no answer came in time: \(reachability?.reason ?? "the reason is not known")",
      remedy: "it may have handled the request, or may still do so", holder: reachability?.holder)
  }

  static func replaced(_ name: String, _ holder: LeaseHolder?) -> WormholeError {
    WormholeError(
      .replaced, "be active as \"\(name)\"",
      reason: "\(holder.map { "\($0)," } ?? "another process") is active under that name",
      remedy: "activate again when it has ended", holder: holder)
  }

  static func notActive(_ name: String) -> WormholeError {
    WormholeError(
      .notActive, "be active as \"\(name)\"", reason: "the session is not active",
      remedy: "activate it")
  }
}

typealias PeerResult = Result<PropertyListValue, WormholeError>

extension PeerResult {
  /// - Parameter container: where the peer would be reached: for a call that has timed out.
  init(_ end: CallEnd, _ peer: String, in container: SharedContainer) {
    switch end {
    case .answered(.reply(let value)): self = .success(value)
    case .answered(.failure(let code, let reason, _)):
      // The codes that a peer may use; any other is just a failure.
      let codes: [WormholeError.Code] = [
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
      self = .failure(.asking(peer, failed: error))
    }
  }
}

extension PropertyListValue {
  /// A value that a peer sent, decoded as a type of the program; throws `unexpectedValue`.
  func decoded<Content: Decodable>(
    as type: Content.Type, _ action: @autoclosure () -> String, from peer: String
  ) throws(WormholeError) -> Content {
    do {
      return try decode(as: type)
    } catch {
      throw WormholeError(
        .unexpectedValue, action(), peer: peer, reason: "it is not of the type \(type): \(error)",
        remedy: "agree with the peer on the type that is sent")
    }
  }
}
