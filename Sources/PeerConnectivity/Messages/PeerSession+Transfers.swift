public import AppGroup

extension PeerSession {
  /// The messages that were sent under this session's name with a receipt and are not forgotten:
  /// those that wait or are taken, and those that ended; also what an earlier process of this name
  /// sent. In the order of sending to each peer.
  ///
  /// - Parameter peer: only those for this one.
  /// - Throws: `PeerError`, for what the container refuses.
  /// - Complexity: a listing of each peer's queue, and reading each file that has such messages.
  public func transfers(to peer: String? = nil) throws -> [PeerTransfer] {
    try transfers(to: peer) { try $0.receipts() }
  }

  private func transfers(
    to peer: String?, _ look: (Queue.Sender) throws -> [QueueReceipt]
  ) throws -> [PeerTransfer] {
    try betweenPeers("look for messages of \"\(name)\"", peer) {
      let peers = try peer.map { [$0] } ?? knownReceivers()
      return try peers.flatMap { peer in
        let sender = try outbox.sender(in: container, from: name, to: peer)
        return try look(sender).map {
          PeerTransfer($0.id, to: peer, $0.payload, by: sender)
        }
      }
    }
  }

  /// What `transfers(to:)` has, and the messages without a receipt that wait or are taken.
  ///
  /// - Parameter peer: only those for this one.
  /// - Throws: `PeerError`, for what the container refuses.
  /// - Complexity: as `transfers(to:)`, and reading each file of this sender that waits or is taken.
  public func outstandingTransfers(to peer: String? = nil) throws -> [PeerTransfer] {
    try transfers(to: peer) { try $0.outstanding() }
  }

  /// The message of an id, of whoever's; nil for what is no such id, and for a message that is nowhere
  /// any more: it has ended, and no receipt was kept or it was forgotten.
  ///
  /// - Throws: `PeerError`, for what the container refuses.
  public func transfer(id: String) throws -> PeerTransfer? {
    guard let id = MessageID(id), !id.isFile else { return nil }
    return try betweenPeers("look for a message to \"\(id.peer)\"", id.peer) {
      let sender = try sender(of: id)
      return try sender.receipt(of: id.entry).map {
        PeerTransfer(id.entry, to: id.peer, $0.payload, by: sender)
      }
    }
  }

  /// What has become of the message of an id, of any sender, as `PeerTransfer.status()`; nil for what is
  /// no such id. A message of which nothing is known any more counts as processed.
  ///
  /// - Throws: `PeerError`, for what the container refuses.
  public func status(ofTransfer id: String) throws -> QueueEntryStatus? {
    guard let id = MessageID(id), !id.isFile else { return nil }
    return try betweenPeers("look for a message to \"\(id.peer)\"", id.peer) {
      try sender(of: id).status(of: id.entry)
    }
  }

  /// Forgets how the message of an id ended, of any sender, as `PeerTransfer.forget()`: also the note of one
  /// that was sent without a receipt. No effect on one that has not ended.
  ///
  /// - Returns: whether anything was known of it.
  /// - Throws: `PeerError`, for what the container refuses.
  @discardableResult
  public func forget(transfer id: String) throws -> Bool {
    guard let id = MessageID(id), !id.isFile else { return false }
    return try betweenPeers("forget a message to \"\(id.peer)\"", id.peer) {
      let sender = try sender(of: id)
      let status = try sender.status(of: id.entry)
      guard status.isEnd else { return false }
      let isKnown = try status != .processed || sender.receipt(of: id.entry) != nil
      try sender.forget(id.entry)
      return isKnown
    }
  }

  private func sender(of id: MessageID) throws -> Queue.Sender {
    let sender = id.entry.sender
    guard sender.utf8.elementsEqual(name.utf8) else {
      return try container.own.queue(PeerNames.messages(id.peer)).sender(sender)
    }
    return try outbox.sender(in: container, from: name, to: id.peer)
  }

  private func knownReceivers() throws -> [String] {
    try container.own.queueNames().compactMap { queue in
      // Whatever else somebody planted there is no peer's.
      guard let peer = PeerNames.peer(ofMessages: queue), PeerNames.isName(peer) else { return nil }
      return peer
    }.sorted()
  }
}
