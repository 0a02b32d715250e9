import AppGroup
import PeerConnectivity

struct PeerRequestCommand: Subcommand {
  static let description = CommandDescription(
    name: "request",
    abstract: "Send a request to a peer, and print its reply.",
    discussion: """
      The exit status is 1, at once, when no process serves that name and none can be started, when \
      the process ends before its answer, and when the peer replies with an error; it is 124 when the \
      time has passed.
      """,
    positionals: [
      .peer,
      PositionalDescription(
        name: "value",
        help: "The request, as JSON; without it, or with '-', it is read from standard input.",
        isOptional: true),
    ],
    options: [
      .value(
        "timeout", "seconds", .seconds, standard: "10", help: "Wait this long for the reply."),
      .from, OutputFormat.option,
    ])

  static let commandPath = ["peer", "request"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let peer = arguments.requiredText("peer")
    let request = try environment.value(arguments.text("value"), "the request")
    let session = try arguments.openSession(environment)
    let reply = try session.request(
      request, to: peer, until: .now + (arguments.seconds("timeout") ?? .seconds(10)))
    try environment.print(
      arguments.outputFormat.bytes(reply, of: "the reply of \(peer.quoted)"))
    return .done
  }
}
