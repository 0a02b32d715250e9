public import FoundationEssentials
import Wormhole
import WormholeInspection
public import WormholePropertyLists

/// A message or file that its receiver gave up and kept; it can be sent again or removed.
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
    /// A file, with its name at the sender and its size in bytes.
    case file(name: String, size: Int64)
  }

  /// Identifies it among all failures of the container. The id of a message is the transfer's.
  public let id: String
  /// The peer that it was sent to.
  public let peer: String
  /// The peer that sent it.
  public let sender: String
  /// The content that was sent.
  public let content: Content
  /// Why it failed.
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
