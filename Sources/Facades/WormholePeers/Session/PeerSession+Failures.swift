import Wormhole
import WormholePropertyLists

extension PeerSession {
  /// The messages and files that their receivers gave up and kept, per peer in the order of
  /// sending, messages before files.
  ///
  /// - Parameter peer: only failures for this peer; nil for all peers.
  /// - Complexity: a listing of each peer's queues, and reading a file for each.
  public func failures(for peer: String? = nil) throws -> [PeerFailure] {
    try betweenPeers("look for failures", peer) {
      try forReceivers(peer) { peer in
        try [false, true].flatMap { isFile in
          try queue(of: peer, isFile: isFile).failures().compactMap {
            PeerFailure($0, for: peer, isFile: isFile)
          }
        }
      }
    }
  }

  /// Sends a kept failed message or file again, as a new transfer of its first sender, delivered
  /// like any other. The status of the first transfer does not change.
  ///
  /// If the process is killed during the call, the call has taken effect completely or not at all.
  ///
  /// - Parameter id: the id of a `PeerFailure`.
  /// - Returns: the new transfer's id; nil if the failure no longer exists.
  /// - Throws: `WormholeError`: an error of the container; the failure is then still kept.
  public func retry(failure id: String) throws -> String? {
    guard let id = MessageID(id) else { return nil }
    return try betweenPeers("send again a failure for \"\(id.peer)\"", id.peer) {
      let queue = queue(of: id.peer, isFile: id.isFile)
      guard let entry = try queue.retry(id.entry) else { return nil }
      _ = outbox.wake(id.peer, for: queue)
      return MessageID(peer: id.peer, entry: entry, isFile: id.isFile).description
    }
  }

  /// Removes a failed message or file that was kept.
  ///
  /// - Parameter id: the id of a `PeerFailure`.
  /// - Returns: false if the failure no longer exists.
  @discardableResult
  public func remove(failure id: String) throws -> Bool {
    guard let id = MessageID(id) else { return false }
    return try betweenPeers("remove a failure for \"\(id.peer)\"", id.peer) {
      try queue(of: id.peer, isFile: id.isFile).forgetFailure(id.entry)
    }
  }

  func queue(of peer: String, isFile: Bool) -> PlainQueue {
    container.own.queue(isFile ? PeerNames.files(peer) : PeerNames.messages(peer))
  }
}
