import AppGroup
import PeerConnectivity
import PropertyLists

struct PeerContextCommand: Subcommand {
  static let description = CommandDescription(
    name: "context",
    abstract: "Set what a peer is to know of this one, or print what both know.",
    discussion: """
      A context is one value for each pair and direction; the latest wins, and it outlives both. \
      Without a value both directions are printed, as {"received": ..., "sent": ...}; what was never \
      set is left out, and the exit status is 1 when neither was.
      """,
    positionals: [
      .peer,
      PositionalDescription(
        name: "value",
        help: "The context, as JSON; with '-', it is read from standard input.",
        isOptional: true),
    ],
    options: [
      .from, .flag("remove", help: "Remove what was set for the peer."), OutputFormat.option,
    ],
    problem: { arguments in
      arguments.has("remove") && arguments.text("value") != nil
        ? "--remove and a value exclude each other" : nil
    })

  static let commandPath = ["peer", "context"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let peer = arguments.requiredText("peer")
    if let text = arguments.text("value") {
      let context = try environment.value(text, "the context")
      try arguments.openSession(environment).setContext(context, for: peer)
      return .done
    }
    let session = try arguments.existingSession(environment)
    if arguments.has("remove") {
      try session?.removeContext(for: peer)
      return .done
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
      arguments.outputFormat.bytes(
        .object(["received": received, "sent": sent]), of: "the context"))
    return .done
  }
}
