import AppGroup
import PeerConnectivity

struct PeerForgetCommand: Subcommand {
  static let description = CommandDescription(
    name: "forget",
    abstract: "Forget what is kept of messages and files that have ended.",
    discussion: """
      Of a message or file that has ended its sender may have a receipt, or a note of why it was not \
      processed; and its receiver may have kept it when it failed. With ids both are forgotten; a file \
      that was kept is deleted. What has not ended is 'peer cancel' for, and stays.

      The exit status is 1 if nothing is known of an id, or if it has not ended.
      """,
    positionals: [
      PositionalDescription(
        name: "id", help: "What 'peer send', 'peer transfer' or 'status' printed.",
        kind: .identifier, isOptional: true, isRepeating: true)
    ],
    options: [
      .flag("processed", help: "What this sender has sent and was processed."),
      .flag("all", help: "What this sender has sent and has ended, however."),
      .flag("failed", help: "What was kept because it failed, of all senders and receivers."),
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
      for failure in try session.failures() { try session.forget(failure: failure.id) }
      return .done
    }
    guard !arguments.texts("id").isEmpty else {
      let mustForget = { (status: QueueEntryStatus) in
        arguments.has("all") ? status.isEnd : status == .processed
      }
      for transfer in try session.transfers() where mustForget(try transfer.status()) {
        try transfer.forget()
      }
      for transfer in try session.fileTransfers() where mustForget(try transfer.status()) {
        try transfer.forget()
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

  /// - Returns: why it cannot be forgotten.
  private func forget(_ id: String, _ session: PeerSession) throws -> String? {
    let file = try session.fileTransfer(id: id)
    let status = try file?.status() ?? session.status(ofTransfer: id)
    if let status, !status.isEnd { return "it has not ended: it is \(status.word)" }
    var isKnown = try session.forget(failure: id)
    if try session.forget(transfer: id) { isKnown = true }
    if let file {
      try file.forget()
      isKnown = true
    }
    return isKnown ? nil : "nothing is known of it"
  }
}

struct PeerRetryCommand: Subcommand {
  static let description = CommandDescription(
    name: "retry",
    abstract: "Send again what failed and was kept.",
    discussion: """
      What 'peer receive --retries' gave up is sent again as a new message of its first sender, behind \
      what waits; so is a file that a program gave up. The new id is printed, a line each. 'status' \
      lists what there is. The exit status is 1 if there is no such failure.
      """,
    positionals: [
      PositionalDescription(
        name: "id", help: "Of a failure, as 'status' lists it.", kind: .identifier,
        isOptional: true, isRepeating: true)
    ],
    options: [.flag("all", help: "Everything that failed and was kept.")],
    problem: { arguments in
      arguments.has("all") == arguments.texts("id").isEmpty
        ? nil : "please provide ids, or '--all'"
    })

  static let commandPath = ["peer", "retry"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let session = try PeerSession(arguments.container.open(), name: PeerSession.standardName)
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
