public import FoundationEssentials
import Wormhole
import WormholeInspection
public import WormholePropertyLists

/// A message or file that its receiver gave up and kept: to be looked at, and sent again or removed.
///
/// ```swift
/// let session = try PeerSession("till", in: container)
/// for failure in try session.failures() {
///   print(failure.content, failure.reason)
///   let id = try session.retry(failure: failure.id)
///   print("sent again as", id ?? "nothing: it was gone")
/// }
/// ```
public struct PeerFailure: Sendable, Hashable {
  /// The content that was sent.
  ///
  /// ```swift
  /// for failure in try PeerSession("till", in: container).failures() {
  ///   if case .message(let message) = failure.content { print(message, failure.reason) }
  /// }
  /// ```
  public enum Content: Sendable, Hashable {
    /// A message, with its value.
    case message(PropertyListValue)
    /// A file, with the name that it had at its sender, and its size in bytes.
    case file(name: String, size: Int64)
  }

  /// Names it among all failures of the container. That of a message is the transfer's.
  public let id: String
  /// The peer that it was for.
  public let peer: String
  /// The peer that sent it.
  public let sender: String
  /// The content that was sent.
  public let content: Content
  /// Why it has failed.
  public let reason: String
  /// When it was given up.
  public let date: Date

  fileprivate init?(_ failure: QueueFailure, for peer: String, isFile: Bool) {
    id = MessageID(peer: peer, entry: failure.id, isFile: isFile).description
    self.peer = peer
    sender = failure.id.sender
    reason = failure.reason
    date = failure.date
    guard isFile else {
      content = .message(failure.payload)
      return
    }
    guard let notice = FileNotice(failure.payload) else { return nil }
    content = .file(name: notice.name, size: notice.size)
  }
}

extension ContainerReport.NamedQueue {
  /// The first failures that were kept, if it is a peer's queue.
  package var peerFailures: [PeerFailure] {
    guard let peer = PeerNames.peer(ofQueue: name), PeerNames.isName(peer) else { return [] }
    let isFile = PeerNames.peer(ofMessages: name) == nil
    return failures.compactMap { PeerFailure($0, for: peer, isFile: isFile) }
  }
}

extension PeerSession {
  /// The messages and files that their receivers gave up and kept, in the order of sending for each peer,
  /// messages before files.
  ///
  /// - Parameter peer: only those for this one; nil for those of all peers.
  /// - Throws: `PeerError`: an error of the container.
  /// - Complexity: a listing of each peer's queues, and reading a file for each.
  public func failures(for peer: String? = nil) throws -> [PeerFailure] {
    try betweenPeers("look for failures", peer) {
      try (peer.map { [$0] } ?? receivers()).flatMap { peer in
        try [false, true].flatMap { isFile in
          try queue(of: peer, isFile: isFile).failures().compactMap {
            PeerFailure($0, for: peer, isFile: isFile)
          }
        }
      }
    }
  }

  /// Sends a failed message or file again that was kept: as a new one of its first sender, which is
  /// delivered as any other. The status of the first one stays as it was.
  ///
  /// A process that is killed in the middle has done it, or not.
  ///
  /// - Parameter id: of a `PeerFailure`.
  /// - Returns: the new one's id; nil when there is no such failure any more.
  /// - Throws: `PeerError`: an error of the container; it is kept still then.
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
  /// - Parameter id: of a `PeerFailure`.
  /// - Returns: false when there is no such failure any more.
  /// - Throws: `PeerError`: an error of the container.
  @discardableResult
  public func remove(failure id: String) throws -> Bool {
    guard let id = MessageID(id) else { return false }
    return try betweenPeers("remove a failure for \"\(id.peer)\"", id.peer) {
      try queue(of: id.peer, isFile: id.isFile).forgetFailure(id.entry)
    }
  }

  private func queue(of peer: String, isFile: Bool) -> Queue {
    container.own.queue(isFile ? PeerNames.files(peer) : PeerNames.messages(peer))
  }
}
