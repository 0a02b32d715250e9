import FoundationEssentials
import Wormhole
import WormholePeers

extension CommandDescription {
  static let peerOutstanding = CommandDescription(
    name: "outstanding",
    abstract:
      "Print the messages and files that a peer has sent, with their status; exit status 1 if there is none.",
    discussion: """
      A line is {"id": ..., "kind": "message", "message": ..., "peer": ..., "status": ...} or {"file": \
      ..., "id": ..., "kind": "file", "peer": ..., "status": ...}, messages before files, in the order \
      of sending to each peer. The status is 'stored', 'taken', 'processed', 'cancelled', 'expired', \
      'superseded' or 'failed' with a "reason"; 'expired' if the receiver has not ended it yet, too.

      All that waits or is taken is listed. The outcome of a file, and of a message that was sent with a \
      receipt, is listed until it is forgotten: by the program that sent it, with --forget, or with \
      'peer forget'. The receipt of a processed message or file is removed after a day.
      """,
    arguments: [
      .ownName,
      .flag(
        "forget",
        help: "Forget each that has ended when its line is written; its sender then does not "
          + "learn the outcome."),
      .jsonAlways,
    ]
  ) { arguments, environment in
    guard let container = try arguments.container.openExisting() else { throw ExitStatus.no }
    let session = try PeerSession(arguments.requiredText("name"), in: container)
    var exitStatus = ExitStatus.no
    func show(
      _ transfer: some PeerTransfer, hasExpired: () throws -> Bool,
      _ content: [String: any JSONMember]
    ) throws {
      exitStatus = .done
      let status = try transfer.status()
      let word = try status == .stored && hasExpired() ? QueueEntryStatus.expired.word : status.word
      let members: [String: any JSONMember] = [
        "id": transfer.id, "peer": transfer.peer, "status": word, "reason": status.reason,
      ]
      // Keys are only ever added; those without a value are left out.
      try environment.print(json: .object(members.merging(content) { own, _ in own }))
      if arguments.has("forget"), status.isEnd { try transfer.removeReceipt() }
    }
    for transfer in try session.outstandingMessageTransfers() {
      try show(
        transfer, hasExpired: transfer.hasExpired,
        ["kind": "message", "message": transfer.value])
    }
    for transfer in try session.fileTransfers() {
      try show(
        transfer, hasExpired: transfer.hasExpired,
        ["kind": "file", "file": transfer.source.path, "metadata": transfer.metadata])
    }
    try exitStatus.end()
  }

  static let peerRemove = CommandDescription(
    name: "remove",
    abstract: "Cancel a message or file that has not been received yet.",
    discussion: """
      The exit status is 0 when it is cancelled and will not be delivered. It is 1 when it was \
      delivered, has ended otherwise, or does not exist.
      """,
    arguments: [
      .operand("id", .identifier, help: "An id that 'peer send' or 'peer transfer' printed.")
    ]
  ) { arguments, _ in
    let id = arguments.requiredText("id")
    let session = try arguments.container.openExisting().map {
      try PeerSession(PeerSession.standardName, in: $0)
    }
    let message: (any PeerTransfer)? = try session?.messageTransfer(id: id)
    guard let transfer = try message ?? session?.fileTransfer(id: id) else {
      throw CommandError.no("remove \(id.quoted)", because: "no such transfer is known")
    }
    if try transfer.cancel() { return }
    let status = try transfer.status()
    throw CommandError.no(
      "remove \(id.quoted)",
      because: status == .taken ? "its receiver already has it" : "it has ended: \(status.word)")
  }

  static let peerForget = CommandDescription(
    name: "forget",
    abstract: "Remove the records of messages and files that have ended.",
    discussion: """
      The sender of a message or file that has ended may have a receipt, or a note why it was not \
      processed; and the receiver may have kept it when it failed. An id removes both; a file that was \
      kept is deleted. A message or file that has not ended stays; 'peer remove' is for those.

      The exit status is 1 if an id is unknown, or has not ended.
      """,
    arguments: [
      .list(
        "id", .identifier, isOptional: true,
        help: "An id that 'peer send', 'peer transfer' or 'status' printed."),
      .flag("processed", help: "All that this sender sent and that was processed."),
      .flag("all", help: "All that this sender sent and that has ended in any way."),
      .flag("failed", help: "All that was kept because it failed, of all senders and receivers."),
      .from,
    ]
  ) { arguments, environment in
    let session = try arguments.openSession(environment)
    if arguments.has("failed") {
      for failure in try session.failures() { try session.remove(failure: failure.id) }
      return
    }
    if !arguments.texts("id").isEmpty {
      return try arguments.forEachID(to: "forget", environment) { try forget($0, session) }
    }
    func forgetEnded(_ transfer: some PeerTransfer) throws {
      let status = try transfer.status()
      guard arguments.has("all") ? status.isEnd : status == .processed else { return }
      try transfer.removeReceipt()
    }
    for transfer in try session.messageTransfers() { try forgetEnded(transfer) }
    for transfer in try session.fileTransfers() { try forgetEnded(transfer) }
  }
  .refusing { arguments in
    let chosen = ["processed", "all", "failed"].filter { arguments.has($0) }
    guard chosen.count + (arguments.texts("id").isEmpty ? 0 : 1) != 1 else { return nil }
    return "please provide ids, or one of '--processed', '--all' and '--failed'"
  }

  static let peerRetry = CommandDescription(
    name: "retry",
    abstract: "Send failed messages and files again that were kept.",
    discussion: """
      A message that 'peer receive --retries' gave up is sent again as a new message of its first \
      sender, behind those that wait; so is a file that a program gave up. The new ids are printed, one \
      line each. 'status' lists the failures. The exit status is 1 if an id is not that of a failure.
      """,
    arguments: [
      .list("id", .identifier, isOptional: true, help: "The id of a failure that 'status' lists."),
      .allFailed,
    ]
  ) { arguments, environment in
    let session = try PeerSession(PeerSession.standardName, in: arguments.container.open())
    let failed = arguments.has("failed") ? try session.failures().map(\.id) : []
    try arguments.forEachID(to: "retry", environment, failed: failed) { id in
      guard let new = try session.retry(failure: id) else { return "no such failure is kept" }
      try environment.print(line: new)
      return nil
    }
  }
  .refusing(ParsedArguments.idsOrFailed)
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
