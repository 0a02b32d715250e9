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

  init?(_ failure: QueueFailure, for peer: String, isFile: Bool) {
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
