import AppGroup
import PeerConnectivity
import PropertyLists
import SystemCalls

extension CommandDescription {
  static let peerReceive = CommandDescription(
    name: "receive",
    abstract: "Print the messages for a peer, one line each, or give each to a command.",
    discussion: """
      A message is processed when its line is written, or when the command, which gets it on standard \
      input, ends with status 0. With status 65 the command refuses the message for good: the sender \
      learns that it failed, receiving goes on, and the exit status is 65 in the end. With any other \
      failure receiving ends with the command's exit status (126 and 127 when it cannot be run, 128 \
      plus the signal's number when it was killed), and the message is delivered again to the next \
      receiver. The same happens when this process is killed in the middle; the command is killed with \
      it.

      With --retries such a failure does not end receiving: the message is given back, and delivered \
      again after a pause that doubles each time, up to an hour; other messages are delivered \
      meanwhile. After the first delivery and so many retries, including deliveries to receivers that \
      were killed, the message has failed: its sender learns that, and the message is kept. 'status' \
      lists it, 'peer retry' sends it again, and 'peer forget' removes it.

      The command's environment has WORMHOLE_SENDER, WORMHOLE_TRANSFER (the message's id), \
      WORMHOLE_PEER, WORMHOLE_REDELIVERY (1 for a message that was delivered, and perhaps handled, \
      before, else 0) and WORMHOLE_DELIVERIES (the number of deliveries, this one included). With \
      --envelope a line is {"deliveries": ..., "id": ..., "message": ..., "redelivery": ..., \
      "sender": ..., "sent": ...}.

      Only one process receives for a name: this one waits up to 10 seconds for another one to end, and \
      replaces one that is stopped. It prints 'listening' on standard error once it receives. SIGINT, \
      SIGTERM and SIGHUP are passed on to the command; after its end they end receiving.
      """,
    positionals: [.ownName],
    options: [
      .count, .timeout, .readyDescriptor,
      .flag("envelope", help: "Print each message with its sender, id and time of sending."),
      OutputFormat.option,
      .value(
        "retries", "n", .unsigned,
        help: "Deliver a message again this many times when the command fails on it."),
      .value(
        "backoff", "seconds", .seconds, standard: "1",
        help: "The pause before the first retry."),
    ],
    tail: TailDescription(
      name: "command",
      help: "Run for each message, with the message on standard input, instead of printing it.",
      isOptional: true)
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let session = try PeerSession(arguments.requiredText("name"), in: arguments.container.open())
    let interruption = try Interruption(endsWithReader: arguments.tail == nil)
    let found = try interruption.wait {
      try session.receiveMessages(
        until: min(deadline, .now + .seconds(10)), maximumDeliveries: arguments.maximumDeliveries)
    }
    guard let receiver = found else { throw ExitStatus.no }
    defer { receiver.close() }
    environment.tellListening(endsWithReader: false)
    let handler = PeerMessageHandler(
      arguments: arguments, interruption: interruption, environment: environment)
    try arguments.handleEach(of: receiver.next, until: deadline, interruption) { message in
      try handler.handle(message)
    }
  }
  .refusing { arguments in
    guard arguments.tail == nil, arguments.text("retries") != nil else { return nil }
    return "--retries needs a command: a message that was printed is not delivered again"
  }
}

extension ParsedArguments {
  /// The deliveries that `--retries` allows; nil for any number.
  var maximumDeliveries: Int? {
    unsigned("retries").map { Int(min($0, UInt64(Int32.max))) + 1 }
  }
}

/// Prints the messages of `peer receive`, or gives them to a command, and settles each.
private struct PeerMessageHandler {
  let arguments: ParsedArguments
  let interruption: Interruption
  let environment: CommandEnvironment

  /// Handles a message, and acknowledges it.
  ///
  /// - Returns: `.badData` for a message that was refused for good; nil for one that was given back.
  /// - Throws: when the message is to be delivered again, to the next receiver.
  func handle(_ message: PeerMessage) throws -> ExitStatus? {
    let hasEnvelope = arguments.has("envelope")
    let bytes: [UInt8]
    do {
      bytes = try arguments.outputFormat.bytes(
        hasEnvelope ? message.envelope : message.value, of: message.title)
    } catch let error as CommandError {
      // A further delivery would fail in the same way.
      return try refuse(message, "\(error)", because: error.reason)
    }
    guard let command = arguments.tail.map(ExternalCommand.init) else {
      if message.isRedelivery, !hasEnvelope {
        environment.tell("\(message.title) was delivered before, and perhaps handled")
      }
      // A message whose line cannot be written is delivered again.
      try environment.print(bytes)
      try message.acknowledge()
      return .done
    }
    let termination = try command.run(
      input: bytes, variables: message.variables(name: arguments.requiredText("name")),
      interruption: interruption
    ).termination
    guard let failure = command.failure(termination) else {
      try message.acknowledge()
      return .done
    }
    if termination == .exited(ExitStatus.badData.rawValue) {
      return try refuse(message, "\(failure), given \(message.title)", because: failure)
    }
    if let maximumDeliveries = arguments.maximumDeliveries, !interruption.isRequested {
      let isGivenBack = try giveBack(message, failure, maximumDeliveries)
      return isGivenBack ? nil : ExitStatus(termination)
    }
    throw CommandError(
      verb: "handle", object: message.title,
      reason: "\(failure); it is delivered again to the next receiver",
      status: ExitStatus(termination))
  }

  /// - Returns: false when the message has failed instead.
  private func giveBack(
    _ message: PeerMessage, _ failure: String, _ maximumDeliveries: Int
  ) throws -> Bool {
    let sentence = "\(failure), given \(message.title)"
    let retries = maximumDeliveries - message.deliveries
    guard retries > 0 else {
      try message.fail(failure, isKept: true)
      environment.tell(
        sentence + "; it is kept: '\(ProgramName.called) peer retry \(message.id)' sends it again")
      return false
    }
    // Doubled with each delivery, up to an hour.
    let backoff = arguments.seconds("backoff") ?? .seconds(1)
    let pause = min(backoff * (1 << min(message.deliveries - 1, 20)), .seconds(3_600))
    try message.release(after: pause)
    let times = retries == 1 ? "once more" : "up to \(retries) times more"
    environment.tell(sentence + "; it is delivered \(times), next in \(pause.shortText)")
    return true
  }

  private func refuse(
    _ message: PeerMessage, _ sentence: String, because reason: String
  ) throws -> ExitStatus {
    try message.fail(reason)
    environment.tell(sentence + "; it is not delivered again")
    return .badData
  }
}

extension PeerMessage {
  /// The message as the object of a sentence.
  fileprivate var title: String { "the message \(id) from \(sender.quoted)" }

  /// Keys are only ever added.
  fileprivate var envelope: PropertyListValue {
    .object([
      "deliveries": deliveries, "id": id, "message": value, "redelivery": isRedelivery,
      "sender": sender, "sent": sent,
    ])
  }

  fileprivate func variables(name: String) -> [String] {
    [
      PeerVariable.assignment(PeerVariable.name, name),
      PeerVariable.assignment(PeerVariable.sender, sender),
      PeerVariable.assignment(PeerVariable.transfer, id),
      PeerVariable.assignment(PeerVariable.redelivery, isRedelivery ? "1" : "0"),
      PeerVariable.assignment(PeerVariable.deliveries, "\(deliveries)"),
    ]
  }
}
