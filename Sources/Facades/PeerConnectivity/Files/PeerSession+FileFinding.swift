import AppGroup

extension PeerSession {
  /// The file transfer of an id, of any sender; nil for any other text, and after its receipt was removed.
  ///
  /// - Throws: `PeerError`: an error of the container.
  /// - Complexity: as `fileTransfers()`, for each peer that has sent files, until it is found.
  public func fileTransfer(id: String) throws -> PeerFileTransfer? {
    guard FileIntention.isID(id) else { return nil }
    if let own = try fileTransfers().first(where: { $0.id == id }) { return own }
    let senders = try betweenPeers("look for a file") {
      try container.own.queueNames().compactMap { PeerNames.peer(ofOutgoingFiles: $0) }
    }
    for sender in senders where !sender.utf8.elementsEqual(name.utf8) && PeerNames.isName(sender) {
      let session = try PeerSession(sender, in: container)
      if let found = try session.fileTransfers().first(where: { $0.id == id }) { return found }
    }
    return nil
  }

  /// Waits until this process copies no files any more; one that exits then leaves nothing behind.
  package func finishCopying(until deadline: ContinuousClock.Instant) {
    outgoingFiles.waitUntilIdle(until: deadline)
  }
}
