import FoundationEssentials
import Wormhole
import WormholePeers

extension CommandDescription {
  static let peerTransfers = CommandDescription(
    name: "transfers",
    abstract:
      "Print the messages and files that a peer has sent, with their status, or change some.",
    discussion: """
      A line is {"id": ..., "kind": "message", "message": ..., "peer": ..., "status": ...} or {"file": \
      ..., "id": ..., "kind": "file", "peer": ..., "status": ...}, messages before files, in the order \
      of sending to each peer. The status is 'waiting', 'taken', 'processed', 'cancelled', 'expired', \
      'superseded' or 'failed' with a "reason"; 'expired' if the receiver has not ended it yet, too. \
      The exit status is 1 if there is none.

      All that waits or is taken is listed. The outcome of a file, and of a message that was sent with a \
      receipt, is listed until it is forgotten: by the program that sent it, or with --forget, after \
      which its sender does not learn the outcome. The receipt of a processed message or file is \
      removed after a day.

      --forget prints those for which 'processed' and 'ended' stand. Of one that has failed and was kept \
      it removes both the receipt and what was kept; a file is deleted. --retry sends it again as a new one of \
      its first sender, behind those that wait, and prints the new id. The exit status is 1 if \
      one of the ids is unknown, was received already (--remove), has not ended (--forget) or is not that of \
      a failure (--retry).
      """,
    arguments: [
      .optional(
        "name", .live(.peer),
        help: "The name of the peer; by default WORMHOLE_PEER in the environment, else "
          + "'\(PeerSession.standardName)'."),
      .value(
        "remove", .identifier, named: "id",
        help: "Cancel it, if it has not been received yet; may be repeated.", isRepeating: true),
      .value(
        "forget", .identifier, named: "id",
        help: "Forget that it has ended; or 'processed' or 'ended' for all such of this peer, or "
          + "'failed' for all of all peers that failed and were kept; may be repeated.",
        isRepeating: true),
      .value(
        "retry", .identifier, named: "id",
        help:
          "Send it again, if it failed and was kept; or 'failed' for all such; may be repeated.",
        isRepeating: true),
      .jsonAlways,
    ]
  ) { arguments, environment in
    guard let container = try arguments.container.openExisting() else { throw ExitStatus.no }
    let session = try PeerSession(
      arguments.text("name") ?? arguments.sessionName(environment), in: container)
    if arguments.isGiven("remove") {
      return try arguments.forEachID(arguments.texts("remove"), to: "remove", environment) {
        try remove($0, session)
      }
    }
    if arguments.isGiven("forget") {
      return try arguments.forEachID(arguments.texts("forget"), to: "forget", environment) { id in
        switch id {
        case "failed":
          for failure in try session.failures() { try session.remove(failure: failure.id) }
        case "processed": try list(session, environment) { $0 == .processed }
        case "ended": try list(session, environment, forgetting: \.isEnd)
        default: return try forget(id, session)
        }
        return nil
      }
    }
    if arguments.isGiven("retry") {
      return try arguments.forEachID(arguments.texts("retry"), to: "retry", environment) { id in
        let all = id == "failed" ? try session.failures().map(\.id) : [id]
        let new = try all.compactMap { try session.retry(failure: $0) }
        for id in new { try environment.print(line: id) }
        return new.isEmpty && id != "failed" ? "no such failure is kept" : nil
      }
    }
    if try !list(session, environment) { throw ExitStatus.no }
  }
  .refusing { arguments in
    ["remove", "forget", "retry"].count { arguments.isGiven($0) } > 1
      ? "'--remove', '--forget' and '--retry' exclude each other" : nil
  }
}

/// Prints what a session has sent.
///
/// - Parameter isForgotten: Only those with such a status are printed, and each is then forgotten.
/// - Returns: Whether there was any.
@discardableResult
private func list(
  _ session: PeerSession, _ environment: CommandEnvironment,
  forgetting isForgotten: ((QueueEntryStatus) -> Bool)? = nil
) throws -> Bool {
  var isAny = false
  func show(
    _ transfer: some PeerTransfer, hasExpired: () throws -> Bool, _ content: JSONObject
  ) throws {
    let status = try transfer.status()
    guard isForgotten?(status) ?? true else { return }
    isAny = true
    let word = try status == .stored && hasExpired() ? QueueEntryStatus.expired.word : status.word
    var line = content
    (line["id"], line["peer"]) = (transfer.id, transfer.peer)
    (line["status"], line["reason"]) = (word, status.reason)
    try environment.print(json: line)
    if isForgotten != nil { try transfer.removeReceipt() }
  }
  for transfer in try session.outstandingMessageTransfers() {
    try show(
      transfer, hasExpired: transfer.hasExpired, ["kind": "message", "message": transfer.value])
  }
  for transfer in try session.fileTransfers() {
    try show(
      transfer, hasExpired: transfer.hasExpired,
      ["kind": "file", "file": transfer.source.path, "metadata": transfer.metadata])
  }
  return isAny
}

/// - Returns: why it cannot be cancelled; nil if it is.
private func remove(_ id: String, _ session: PeerSession) throws -> String? {
  let message: (any PeerTransfer)? = try session.messageTransfer(id: id)
  guard let transfer = try message ?? session.fileTransfer(id: id) else {
    return "no such transfer is known"
  }
  if try transfer.cancel() { return nil }
  let status = try transfer.status()
  return status == .taken ? "its receiver already has it" : "it has ended: \(status.word)"
}

/// - Returns: why it cannot be forgotten; nil if it is.
private func forget(_ id: String, _ session: PeerSession) throws -> String? {
  let file = try session.fileTransfer(id: id)
  let status = try file?.status() ?? session.status(ofMessage: id)
  if let status, !status.isEnd { return "it has not ended: it is \(status.word)" }
  let wasKept = try session.remove(failure: id)
  let hadReceipt = try session.removeReceipt(ofMessage: id)
  try file?.removeReceipt()
  return wasKept || hadReceipt || file != nil ? nil : "no such message or file is known"
}
