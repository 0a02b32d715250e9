import Wormhole
import WormholePeers
import WormholePropertyLists

extension CommandDescription {
  static let peerSend = CommandDescription(
    name: "send",
    abstract: "Queue a message or a file, which is delivered when the peer receives.",
    discussion: """
      The command returns when the message is stored, and prints its id, for 'peer transfers'. The message \
      is delivered until it is processed, in the order of sending. 'peer transfers' lists it as long \
      as it waits; with --receipt also its outcome.

      With --file the command returns when the file's content is in the container; the value, if there is one, goes \
      with the file. A bar shows the progress where standard error is a terminal. An interruption before that \
      cancels the transfer.
      """,
    arguments: [
      .peer, .jsonValue("message"), .form, .nulls,
      .value("file", .file, help: "Send this regular file, and the value as its metadata."),
      .from, .durable("it"), .expires,
      .value(
        "key", .identifier, named: "key",
        help: "Replace a waiting message of this sender with the same key."),
      .flag("urgent", help: "Start a peer that is registered to be started for urgent messages."),
      .receipt, .wait, .timeout,
    ]
  ) { arguments, environment in
    if let file = arguments.text("file") { return try arguments.sendFile(file, environment) }
    let deadline = arguments.deadline()
    let message = try arguments.value(environment, "the message")
    let waits = arguments.text("wait") != nil
    let peer = arguments.requiredText("peer")
    let session = try arguments.openSession(environment, sendingTo: PeerNames.messages(peer))
    let transfer = try session.enqueue(
      message, to: peer,
      options: PeerMessageOptions(
        durability: arguments.durability,
        expiry: arguments.duration("expires"), key: arguments.text("key"),
        isUrgent: arguments.has("urgent"),
        keepsReceipt: waits || arguments.has("receipt"), receiptTerm: .dayAfterProcessing))
    try environment.print(line: transfer.id)
    guard waits else { return }
    try transfer.finalStatus(until: deadline).end(
      of: "the message \(transfer.id)", environment
    ) { try transfer.removeReceipt() }
  }
  .refusing(ParsedArguments.waitProblem)
  .refusing { arguments in
    guard arguments.isGiven("file") else { return nil }
    return ["key", "urgent", "receipt"].first(where: arguments.isGiven).map {
      "--file and --\($0) exclude each other"
    }
  }

  static let peerRequest = CommandDescription(
    name: "request",
    abstract: "Send a request to a peer, and print its reply.",
    discussion: """
      The exit status is 69, at once, when no process serves that name and none can be started, and when \
      the process ends before its answer; 1 when the peer replies with an error; 124 when the time has passed.
      """,
    arguments: [.peer, .jsonValue("request")] + ArgumentDescription.valueSources + [
      .value("timeout", .duration, standard: "10", help: "Wait this long for the reply."),
      .from, .jsonAlways, .format,
    ]
  ) { arguments, environment in
    let peer = arguments.requiredText("peer")
    let request = try arguments.value(environment, "the request")
    let session = try arguments.openSession(environment)
    let reply = try session.request(request, to: peer, until: arguments.deadline())
    try environment.print(arguments.outputFormat.bytes(reply, of: "the reply of \(peer.quoted)"))
  }
  .refusing(ParsedArguments.valueProblem)

  static let peerContext = CommandDescription(
    name: "context",
    abstract: "Set the context for a peer, or print the contexts in both directions.",
    discussion: """
      A context is one value for each pair of peers and each direction; the latest one counts, and it \
      outlives both peers. Without a value both directions are printed, as {"received": ..., "sent": \
      ...}; a context that was never set is left out, and the exit status is 1 when neither was set.
      """,
    arguments: [
      .peer,
      .optional("value", help: "The context, as JSON; with '-', it is read from standard input."),
      .form, .nulls,
      .from, .flag("remove", help: "Remove the context for the peer."), .jsonAlways, .format,
    ]
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
      throw CommandError.no(
        "read a context of \(name.quoted) and \(peer.quoted)",
        because: "neither has set one for the other")
    }
    let both: JSONObject = ["received": received, "sent": sent]
    try environment.print(arguments.outputFormat.bytes(both, of: "the context"))
  }
  .refusing(ParsedArguments.valueProblem)
  .refusing { arguments in
    arguments.has("remove") && arguments.text("value") != nil
      ? "--remove and a value exclude each other" : nil
  }

  static let peerReceive = CommandDescription(
    name: "receive",
    abstract: "Print the messages or files for a peer, one line each, or give each to a command.",
    discussion: """
      A message is processed when its line is written, or when the command, which gets it on standard \
      input, ends with status 0. With any other status receiving ends with it (126 and 127 when the \
      command cannot be run, 128 plus the signal's number when it was killed), and the message is \
      delivered again to the next receiver. The same happens when this process is killed in the middle; \
      the command is killed with it.

      With --retries such a failure does not end receiving: the message is delivered again after a pause \
      that doubles each time, up to an hour; other messages are delivered meanwhile. After the first \
      attempt and so many retries, including those of receivers that were killed, the message has \
      failed: its sender learns that, and the message is kept. 'status' lists it, 'peer transfers' sends it \
      again, or removes it. With --fail-status that is so after the first attempt that \
      ends with this status.

      The command's environment has WORMHOLE_SENDER, WORMHOLE_TRANSFER (the message's id), \
      WORMHOLE_PEER and WORMHOLE_IDENTIFIER (both the name of the peer), WORMHOLE_TIME (of sending), \
      WORMHOLE_REDELIVERY (1 for a message that was delivered, and perhaps handled, before, else 0) and \
      WORMHOLE_ATTEMPT (1 for the first). With --details a line is {"attempt": ..., "id": ..., \
      "message": ..., "redelivery": ..., "sender": ..., "sent": ...}.

      Only one process receives for a name: this one waits up to 10 seconds for another one to end, and \
      replaces one that is stopped. It prints 'listening' on standard error once it receives. A name to \
      which nothing was ever sent is removed again at the end. If nothing reads the output, it waits as long \
      as --timeout says, but at least three seconds; then the message is delivered again. SIGINT, SIGTERM and SIGHUP are passed on to the command; after its end they end receiving, \
      and a message that it has not handled goes back, which is no attempt.

      With --files the files for the peer are put into a directory instead. A line is {"id": ..., "metadata": ..., \
      "name": ..., "path": ..., "redelivery": ..., "sender": ..., "size": ...}; "name" is the file's name at its \
      sender, and "path" its path now. No file is overwritten, and no name leads out of the directory: the second \
      a.txt becomes a-2.txt, and characters that could mislead a shell become '_'. A file is processed when its line \
      is written, or COMMAND has ended, with whatever status.
      """,
    arguments: [
      .ownName,
      .value(
        "files", .directory,
        help: "Receive files instead, into this directory, which must exist."),
      .count, .timeout, .readyDescriptor, .details, .jsonAlways, .format,
      .retries, .backoff, .failStatus("a message"), .command(forEach: "message"),
    ]
  ) { arguments, environment in
    if let place = arguments.text("files") {
      return try arguments.receiveFiles(into: place, environment)
    }
    let deadline = arguments.deadline()
    let name = arguments.requiredText("name")
    let first = Prefetch.queue(PeerNames.messages(name), isOwn: true)
    let session = try PeerSession(name, in: arguments.container.open(first))
    let interruption = try Interruption(adopts: true, endsWithReader: arguments.tail == nil)
    try session.leavingNoName(forFiles: false) { hasReceived in
      let found = try noticingUse {
        try interruption.wait {
          try session.receiveMessages(
            until: min(deadline, .now + .seconds(10)), attempts: arguments.attempts)
        }
      }
      guard let receiver = found else { throw ExitStatus.no }
      defer { receiver.close() }
      environment.reportListening(endsWithReader: false)
      let handler = DeliveryHandler(
        arguments: arguments, receiver: name, interruption: interruption, deadline: deadline,
        environment: environment)
      try arguments.handleEach(of: receiver.next, until: deadline, interruption) { message in
        hasReceived = true
        return try handler.handle(message)
      }
    }
  }
  .refusing { arguments in
    guard arguments.isGiven("files") else { return arguments.problemWithoutCommand("a message") }
    return ["details", "format", "retries", "backoff", "fail-status"].first(
      where: arguments.isGiven
    )
    .map { "--files and --\($0) exclude each other" }
  }
}

extension PeerMessage: HandledDelivery {
  var title: String { "the message \(id) from \(sender.quoted)" }

  var envelope: JSONObject {
    [
      "attempt": attempt, "id": id, "message": value, "redelivery": isRedelivery,
      "sender": sender, "sent": sent,
    ]
  }

  func variables(receiver: String) -> [String: String] {
    [CommandVariable.peer: receiver, CommandVariable.transfer: id]
  }

  func retryCommand(receiver: String) -> String {
    "\(ProgramName.called) peer transfers --retry \(id)"
  }
}
