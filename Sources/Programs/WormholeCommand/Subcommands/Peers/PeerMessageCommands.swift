import Wormhole
import WormholePeers

extension CommandDescription {
  static let peerSend = CommandDescription(
    name: "send",
    abstract: "Queue a message, which is delivered when the peer receives.",
    discussion: """
      The command returns when the message is stored, and prints its id, for 'peer cancel'. The message \
      is delivered until it is processed, in the order of sending. 'peer outstanding' lists it as long \
      as it waits; with --receipt also its outcome.
      """,
    positionals: [.peer, .json("message")],
    options: OptionDescription.valueSources + [
      .from, .durable("it"), .expires,
      .value(
        "key", "key", .identifier,
        help: "Replace a waiting message of this sender with the same key."),
      .flag("urgent", help: "Start a peer that is registered to be started for urgent messages."),
      .receipt, .wait, .timeout,
    ],
    problem: ParsedArguments.messageProblem
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let message = try arguments.value(environment, "the message")
    let waits = arguments.text("wait") != nil
    let transfer = try arguments.openSession(environment).enqueue(
      message, to: arguments.requiredText("peer"),
      options: PeerMessageOptions(
        durability: arguments.durability,
        expiry: arguments.seconds("expires"), key: arguments.text("key"),
        isUrgent: arguments.has("urgent"),
        keepsReceipt: waits || arguments.has("receipt"), receiptTerm: .dayAfterProcessing))
    try environment.print(line: transfer.id)
    guard waits else { return }
    let status = try transfer.finalStatus(until: deadline)
    // The exit status tells the outcome, so its record is not needed any more.
    if status.isEnd { try transfer.removeReceipt() }
    try status.end(of: "the message \(transfer.id)", environment)
  }

  static let peerRequest = CommandDescription(
    name: "request",
    abstract: "Send a request to a peer, and print its reply.",
    discussion: """
      The exit status is 1, at once, when no process serves that name and none can be started, when \
      the process ends before its answer, and when the peer replies with an error; it is 124 when the \
      time has passed.
      """,
    positionals: [.peer, .json("request")],
    options: OptionDescription.valueSources + [
      .value(
        "timeout", "seconds", .seconds, standard: "10", help: "Wait this long for the reply."),
      .from, .raw, OutputFormat.option, .pretty,
    ], problem: ParsedArguments.valueProblem
  ) { arguments, environment in
    let peer = arguments.requiredText("peer")
    let request = try arguments.value(environment, "the request")
    let session = try arguments.openSession(environment)
    let reply = try session.request(
      request, to: peer, until: .now + (arguments.seconds("timeout") ?? .seconds(10)))
    try environment.print(arguments.bytes(reply, of: "the reply of \(peer.quoted)"))
  }

  static let peerContext = CommandDescription(
    name: "context",
    abstract: "Set the context for a peer, or print the contexts in both directions.",
    discussion: """
      A context is one value for each pair of peers and each direction; the latest one counts, and it \
      outlives both peers. Without a value both directions are printed, as {"received": ..., "sent": \
      ...}; a context that was never set is left out, and the exit status is 1 when neither was set.
      """,
    positionals: [
      .peer,
      PositionalDescription(
        name: "value",
        help: "The context, as JSON; with '-', it is read from standard input.",
        isOptional: true),
    ],
    options: OptionDescription.valueForms + [
      .from, .flag("remove", help: "Remove the context for the peer."), OutputFormat.option,
      .pretty,
    ], problem: ParsedArguments.valueProblem
  ) { arguments, environment in
    let peer = arguments.requiredText("peer")
    if arguments.text("value") != nil {
      let context = try arguments.value(environment, "the context")
      return try arguments.openSession(environment).setContext(context, for: peer)
    }
    let session = try arguments.existingSession(environment)
    if arguments.has("remove") {
      try session?.removeContext(for: peer)
      return
    }
    let received = try session?.context(from: peer)
    let sent = try session?.context(for: peer)
    guard received != nil || sent != nil else {
      let name = arguments.sessionName(environment)
      throw CommandError(
        verb: "read", object: "a context of \(name.quoted) and \(peer.quoted)",
        reason: "neither has set one for the other", status: .no)
    }
    try environment.print(
      arguments.bytes(
        .object(["received": received, "sent": sent]), of: "the context"))
  }
  .refusing { arguments in
    arguments.has("remove") && arguments.text("value") != nil
      ? "--remove and a value exclude each other" : nil
  }
}
