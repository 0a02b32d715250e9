import AppGroup

extension PeerSession {
  /// The file of an id, of whoever's; nil for what is no such id, or was forgotten.
  ///
  /// - Throws: `PeerError`, for what the container refuses.
  /// - Complexity: as `fileTransfers()`, for each peer that has sent files, until it is found.
  public func fileTransfer(id: String) throws -> PeerFileTransfer? {
    guard FileIntention.isID(id) else { return nil }
    if let own = try fileTransfers().first(where: { $0.id == id }) { return own }
    let senders = try betweenPeers("look for a file") {
      try container.own.queueNames().compactMap { PeerNames.peer(ofOutgoingFiles: $0) }
    }
    for sender in senders where !sender.utf8.elementsEqual(name.utf8) && PeerNames.isName(sender) {
      let session = try PeerSession(container, name: sender)
      if let found = try session.fileTransfers().first(where: { $0.id == id }) { return found }
    }
    return nil
  }

  /// Waits until this process copies no files any more; one that exits then leaves nothing behind.
  package func finishCopying(until deadline: ContinuousClock.Instant) {
    outgoingFiles.waitUntilIdle(until: deadline)
  }
}
