import Wormhole
import WormholePropertyLists

extension PeerError {
  /// An error of a container, as an error between peers.
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

  /// Any error as an error between peers; one that is so already is returned unchanged.
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

/// Runs a call between peers; see the form without `async`.
package func betweenPeers<Result: Sendable>(
  _ action: @autoclosure () -> String, _ peer: String? = nil, _ body: () async throws -> Result
) async throws(PeerError) -> Result {
  do {
    return try await body()
  } catch {
    throw PeerError(any: error, action(), peer: peer)
  }
}
