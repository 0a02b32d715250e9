public import FoundationEssentials
public import Wormhole
import WormholeInspection
public import WormholePropertyLists

/// A guaranteed message, to be acknowledged when it is handled; see `PeerDelivery`.
///
/// ```swift
/// let receiver = try await PeerSession("till", in: container).receiveMessages()
/// if let message = try await receiver.next(until: .now + .seconds(2)) {
///   print(message.sender, message.value)
///   try message.acknowledge()
/// }
/// ```
public struct PeerMessage: PeerDelivery {
  private let entry: QueueEntry
  private let receiver: String

  init(_ entry: QueueEntry, for receiver: String) {
    self.entry = entry
    self.receiver = receiver
  }

  /// The transfer's id.
  public var id: String { MessageID(peer: receiver, entry: entry.id).description }
  /// The sender, by the name that it gave itself.
  public var sender: String { entry.sender }
  /// The value that was sent.
  public var value: PropertyListValue { entry.payload }
  /// When it was sent, by its sender's clock, which never goes back.
  public var sent: Date { entry.sent }
  /// Whether it was delivered before, and perhaps handled.
  public var isRedelivery: Bool { entry.isRedelivery }
  /// How often it was delivered, this time included.
  public var deliveries: Int { entry.deliveries }

  /// Decodes the message as a type of the program.
  ///
  /// - Throws: `PeerError`: `unexpectedValue`.
  public func decode<Message: Decodable>(_ type: Message.Type) throws -> Message {
    try value.decoded(as: type, action("read"), from: sender)
  }

  /// Ends it as processed; see `PeerDelivery`.
  ///
  /// - Complexity: one unlink; for a message that was stored together with others, until the last
  ///   of them, an open, a write and a close.
  public func acknowledge() throws {
    try betweenPeers(action("acknowledge"), sender) { try entry.acknowledge() }
  }

  /// Ends it as failed; see `PeerDelivery`.
  public func fail(_ reason: String, isKept: Bool = false) throws {
    try betweenPeers(action("fail"), sender) { try entry.fail(reason, isKept: isKept) }
  }

  /// Gives it back; see `PeerDelivery`.
  public func release(after pause: Duration) throws {
    try betweenPeers(action("give back"), sender) { try entry.release(after: pause) }
  }

  private func action(_ verb: String) -> String { "\(verb) a message from \"\(sender)\"" }
}

/// How a guaranteed message is to be sent.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let options = PeerMessageOptions(expiry: .seconds(60), key: "score", keepsReceipt: true)
/// try await phone.enqueue(["score": 3], to: "watch", options: options)
/// ```
public struct PeerMessageOptions: Sendable, Hashable {
  /// The failures that it survives once it is stored; `.standard` survives the end of processes,
  /// `.durable` also a loss of power.
  public var durability: Durability
  /// How long it may be delivered; nil for no limit.
  public var expiry: Duration?
  /// A newer message with the same key from the same sender replaces a waiting message.
  public var key: String?
  /// Whether it starts a peer that registered to be started for urgent work.
  public var isUrgent: Bool
  /// Whether the sender can find it again, with its end, even after the sender's own restart:
  /// `messageTransfers()` lists it, and it takes up space, until its receipt is removed. Without a
  /// receipt `status(ofMessage:)` shows for a day how it ended.
  public var keepsReceipt: Bool
  /// Whether the receipt is removed automatically a day after the message was processed.
  public var receiptTerm: QueueReceipt.Term

  /// Makes options.
  public init(
    durability: Durability = .standard, expiry: Duration? = nil, key: String? = nil,
    isUrgent: Bool = false, keepsReceipt: Bool = false,
    receiptTerm: QueueReceipt.Term = .untilForgotten
  ) {
    self.durability = durability
    self.expiry = expiry
    self.key = key
    self.isUrgent = isUrgent
    self.keepsReceipt = keepsReceipt
    self.receiptTerm = receiptTerm
  }
}

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
  /// The messages and files that their receivers gave up and kept, in the order of sending for each
  /// peer, messages before files.
  ///
  /// - Parameter peer: only failures for this peer; nil for those of all peers.
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

  /// Sends a kept failed message or file again, as a new transfer of its first sender, which is
  /// delivered as any other. The status of the first transfer does not change.
  ///
  /// If the process is killed during the call, the call has taken effect completely or not at all.
  ///
  /// - Parameter id: the id of a `PeerFailure`.
  /// - Returns: the new transfer's id; nil when the failure no longer exists.
  /// - Throws: `PeerError`: an error of the container; the failure is then still kept.
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
  /// - Returns: false when the failure no longer exists.
  @discardableResult
  public func remove(failure id: String) throws -> Bool {
    guard let id = MessageID(id) else { return false }
    return try betweenPeers("remove a failure for \"\(id.peer)\"", id.peer) {
      try queue(of: id.peer, isFile: id.isFile).forgetFailure(id.entry)
    }
  }

  func queue(of peer: String, isFile: Bool) -> Queue {
    container.own.queue(isFile ? PeerNames.files(peer) : PeerNames.messages(peer))
  }
}
