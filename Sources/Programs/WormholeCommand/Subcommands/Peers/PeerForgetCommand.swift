import AppGroup
import PeerConnectivity

struct PeerForgetCommand: Subcommand {
  static let description = CommandDescription(
    name: "forget",
    abstract: "Remove the records of messages and files that have ended.",
    discussion: """
      The sender of a message or file that has ended may have a receipt, or a note why it was not \
      processed; and the receiver may have kept it when it failed. An id removes both; a file that was \
      kept is deleted. A message or file that has not ended stays; 'peer cancel' is for those.

      The exit status is 1 if an id is unknown, or has not ended.
      """,
    positionals: [
      PositionalDescription(
        name: "id", help: "An id that 'peer send', 'peer transfer' or 'status' printed.",
        kind: .identifier, isOptional: true, isRepeating: true)
    ],
    options: [
      .flag("processed", help: "All that this sender sent and that was processed."),
      .flag("all", help: "All that this sender sent and that has ended in any way."),
      .flag("failed", help: "All that was kept because it failed, of all senders and receivers."),
      .from,
    ],
    problem: { arguments in
      let chosen = ["processed", "all", "failed"].filter { arguments.has($0) }
      guard chosen.count + (arguments.texts("id").isEmpty ? 0 : 1) != 1 else { return nil }
      return "please provide ids, or one of '--processed', '--all' and '--failed'"
    })

  static let commandPath = ["peer", "forget"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let session = try arguments.openSession(environment)
    if arguments.has("failed") {
      for failure in try session.failures() { try session.remove(failure: failure.id) }
      return .done
    }
    guard !arguments.texts("id").isEmpty else {
      let mustForget = { (status: QueueEntryStatus) in
        arguments.has("all") ? status.isEnd : status == .processed
      }
      for transfer in try session.messageTransfers() where mustForget(try transfer.status()) {
        try transfer.removeReceipt()
      }
      for transfer in try session.fileTransfers() where mustForget(try transfer.status()) {
        try transfer.removeReceipt()
      }
      return .done
    }
    var status = ExitStatus.done
    for id in arguments.texts("id") {
      if let problem = try forget(id, session) {
        environment.tell("cannot forget \(id.quoted): \(problem)")
        status = .no
      }
    }
    return status
  }

  /// - Returns: why it cannot be forgotten; nil if it is.
  private func forget(_ id: String, _ session: PeerSession) throws -> String? {
    let file = try session.fileTransfer(id: id)
    let status = try file?.status() ?? session.status(ofMessage: id)
    if let status, !status.isEnd { return "it has not ended: it is \(status.word)" }
    var isKnown = try session.remove(failure: id)
    if try session.removeReceipt(ofMessage: id) { isKnown = true }
    if let file {
      try file.removeReceipt()
      isKnown = true
    }
    return isKnown ? nil : "no such message or file is known"
  }
}

struct PeerRetryCommand: Subcommand {
  static let description = CommandDescription(
    name: "retry",
    abstract: "Send failed messages and files again that were kept.",
    discussion: """
      A message that 'peer receive --retries' gave up is sent again as a new message of its first \
      sender, behind those that wait; so is a file that a program gave up. The new ids are printed, one \
      line each. 'status' lists the failures. The exit status is 1 if there is no such failure.
      """,
    positionals: [
      PositionalDescription(
        name: "id", help: "The id of a failure that 'status' lists.", kind: .identifier,
        isOptional: true, isRepeating: true)
    ],
    options: [.flag("all", help: "All that failed and was kept.")],
    problem: { arguments in
      arguments.has("all") == arguments.texts("id").isEmpty
        ? nil : "please provide ids, or '--all'"
    })

  static let commandPath = ["peer", "retry"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let session = try PeerSession(PeerSession.standardName, in: arguments.container.open())
    let ids = arguments.has("all") ? try session.failures().map(\.id) : arguments.texts("id")
    var status = ExitStatus.done
    for id in ids {
      if let new = try session.retry(failure: id) {
        try environment.print(line: new)
      } else if !arguments.has("all") {
        environment.tell("cannot send \(id.quoted) again: no such failure is kept")
        status = .no
      }
    }
    return status
  }
}
