import AppGroup
import FoundationEssentials
import PeerConnectivity
import PropertyLists

struct PeerOutstandingCommand: Subcommand {
  static let description = CommandDescription(
    name: "outstanding",
    abstract: "Print the messages and files that a peer has sent, with their status.",
    discussion: """
      A line is {"id": ..., "kind": "message", "message": ..., "peer": ..., "status": ...} or {"file": \
      ..., "id": ..., "kind": "file", "peer": ..., "status": ...}, messages before files, in the order \
      of sending to each peer. The status is 'stored', 'taken', 'processed', 'cancelled', 'expired', \
      'superseded' or 'failed' with a "reason".

      All that waits or is taken is listed. The outcome of a file, and of a message that was sent with a \
      receipt, is listed until it is forgotten: by the program that sent it, with --forget, or with \
      'peer forget'. The receipt of a processed message or file is removed after a day.
      """,
    positionals: [.ownName],
    options: [
      .flag(
        "forget",
        help: "Forget each that has ended when its line is written; its sender then does not "
          + "learn the outcome.")
    ])

  static let commandPath = ["peer", "outstanding"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    guard let container = try arguments.container.openExisting() else { return .done }
    let session = try PeerSession(arguments.requiredText("name"), in: container)
    let forgets = arguments.has("forget")
    for transfer in try session.outstandingMessageTransfers() {
      let status = try transfer.status()
      try environment.print(
        line: status.line(
          transfer.id, to: transfer.peer, ["kind": "message", "message": transfer.value]))
      if forgets, status.isEnd { try transfer.removeReceipt() }
    }
    for transfer in try session.fileTransfers() {
      let status = try transfer.status()
      try environment.print(
        line: status.line(
          transfer.id, to: transfer.peer,
          [
            "kind": "file", "file": .string(transfer.source.path), "metadata": transfer.metadata,
          ]))
      if forgets, status.isEnd { try transfer.removeReceipt() }
    }
    return .done
  }
}

extension QueueEntryStatus {
  /// Keys are only ever added; those without a value are left out.
  fileprivate func line(
    _ id: String, to peer: String, _ content: [String: PropertyListValue?]
  ) throws -> String {
    let common: [String: PropertyListValue?] = [
      "id": .string(id), "peer": .string(peer), "status": .string(word),
      "reason": reason.map { .string($0) },
    ]
    return try JSONWriter.string(.object(common.merging(content) { common, _ in common }))
  }
}

struct PeerCancelCommand: Subcommand {
  static let description = CommandDescription(
    name: "cancel",
    abstract: "Cancel a message or file that has not been received yet.",
    discussion: """
      The exit status is 0 when it is cancelled and will not be delivered. It is 1 when it was \
      delivered, has ended otherwise, or does not exist.
      """,
    positionals: [
      PositionalDescription(
        name: "id", help: "An id that 'peer send' or 'peer transfer' printed.", kind: .identifier)
    ])

  static let commandPath = ["peer", "cancel"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let id = arguments.requiredText("id")
    let session = try arguments.container.openExisting().map {
      try PeerSession(PeerSession.standardName, in: $0)
    }
    let isCancelled: Bool
    let status: QueueEntryStatus
    if let message = try session?.messageTransfer(id: id) {
      (isCancelled, status) = (try message.cancel(), try message.status())
    } else if let file = try session?.fileTransfer(id: id) {
      (isCancelled, status) = (try file.cancel(), try file.status())
    } else {
      throw CommandError(
        verb: "cancel", object: id.quoted, reason: "no such transfer is known", status: .no)
    }
    if isCancelled { return .done }
    throw CommandError(
      verb: "cancel", object: id.quoted,
      reason: status == .taken ? "its receiver already has it" : "it has ended: \(status.word)",
      status: .no)
  }
}
