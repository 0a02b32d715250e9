import Wormhole
import WormholePeers
import WormholePropertyLists

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
      WORMHOLE_PEER and WORMHOLE_IDENTIFIER (both the name of the peer), WORMHOLE_TIME (of sending), \
      WORMHOLE_REDELIVERY (1 for a message that was delivered, and perhaps handled, before, else 0) and \
      WORMHOLE_DELIVERIES (the number of deliveries, this one included). With --envelope a line is \
      {"deliveries": ..., "id": ..., "message": ..., "redelivery": ..., "sender": ..., "sent": ...}.

      Only one process receives for a name: this one waits up to 10 seconds for another one to end, and \
      replaces one that is stopped. It prints 'listening' on standard error once it receives. A name to \
      which nothing was ever sent is removed again at the end. SIGINT, \
      SIGTERM and SIGHUP are passed on to the command; after its end they end receiving.
      """,
    positionals: [.ownName],
    options: [
      .count, .timeout, .readyDescriptor,
      .flag("envelope", help: "Print each message with its sender, id and time of sending."),
      .raw, OutputFormat.option, .pretty,
      .retries("a message"), .backoff,
    ],
    tail: TailDescription(
      name: "command",
      help: "Run for each message, with the message on standard input, instead of printing it.",
      isOptional: true)
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let session = try PeerSession(arguments.requiredText("name"), in: arguments.container.open())
    let interruption = try Interruption(endsWithReader: arguments.tail == nil)
    try session.leavingNoMessageName { hasReceived in
      let found = try interruption.wait {
        try session.receiveMessages(
          until: min(deadline, .now + .seconds(10)), maximumDeliveries: arguments.maximumDeliveries)
      }
      guard let receiver = found else { throw ExitStatus.no }
      defer { receiver.close() }
      environment.tellListening(endsWithReader: false)
      let handler = DeliveryHandler(
        arguments: arguments, receiver: arguments.requiredText("name"), interruption: interruption,
        environment: environment)
      try arguments.handleEach(of: receiver.next, until: deadline, interruption) { message in
        hasReceived = true
        return try handler.handle(message)
      }
    }
  }
  .refusing { arguments in
    guard arguments.tail == nil, arguments.text("retries") != nil else { return nil }
    return "--retries needs a command: a message that was printed is not delivered again"
  }
}

extension PeerMessage: HandledDelivery {
  var title: String { "the message \(id) from \(sender.quoted)" }

  /// Keys are only ever added.
  var envelope: PropertyListValue {
    .object([
      "deliveries": deliveries, "id": id, "message": value, "redelivery": isRedelivery,
      "sender": sender, "sent": sent,
    ])
  }

  func variables(receiver: String) -> [String] {
    [
      CommandVariable.assignment(PeerVariable.name, receiver),
      CommandVariable.assignment(PeerVariable.transfer, id),
    ]
  }

  func retryCommand(receiver: String) -> String { "\(ProgramName.called) peer retry \(id)" }
}
