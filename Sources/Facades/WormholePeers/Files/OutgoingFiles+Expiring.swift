package import Wormhole
package import WormholeInspection

/// Receipts of files are removed automatically when they have a term.
///
/// A transfer has two: the receipt of the intention, by which it is listed, and the file's in its
/// peer's queue. The second has the term and is removed a day after the file was processed: by a
/// later send or by a sweep. The intention's receipt must not expire by age, because the file may
/// wait for weeks after it was copied. It is removed when the peer's queue has nothing of the file.
extension OutgoingFiles {
  /// Removes the receipts of files sent with a term by this name and processed a day ago.
  ///
  /// - Returns: the ids of the transfers.
  /// - Throws: `AppGroupError`, for what the file system refuses.
  /// - Complexity: reads every receipt of this name, and for expired ones all with their peers.
  func expire() throws -> [String] {
    let intentions = try self.intentions()
    // By bytes: two names may be equal as strings.
    var kept: [[UInt8]: Set<String>] = [:]
    var expired: [String] = []
    for receipt in try intentions.receipts() where receipt.status == .processed {
      guard let intention = FileIntention(receipt.payload), PeerNames.isName(intention.peer),
        intention.options.receiptTerm == .dayAfterProcessing
      else { continue }
      let peer = Array(intention.peer.utf8)
      let sender = try self.sender(to: intention.peer)
      let listed =
        try kept[peer] ?? Set(sender.receipts().compactMap { FileNotice($0.payload)?.id })
      kept[peer] = listed
      // A sender that was killed before it had the receipt has stored the file nevertheless.
      guard !listed.contains(intention.id),
        try sender.queue.entry(of: name, attachmentPrefix: intention.attachmentPrefix) == nil
      else { continue }
      try intentions.forget(receipt.id)
      expired.append(intention.id)
    }
    return expired
  }
}

extension SharedContainer {
  /// As `sweep(patience:)`, and also removes the receipts of files whose senders do not run.
  ///
  /// - Throws: as `sweep(patience:)`.
  package func sweepWithFiles() throws -> SweepReport {
    try sweep {
      try own.queueNames().flatMap { queue -> [String] in
        guard let sender = PeerNames.peer(ofOutgoingFiles: queue), PeerNames.isName(sender) else {
          return []
        }
        return try OutgoingFiles(Outbox(of: sender, in: self)).expire().map {
          own.queue(queue).path + "/sent (transfer \($0))"
        }
      }
    }
  }
}
