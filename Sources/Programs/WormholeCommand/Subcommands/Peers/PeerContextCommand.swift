import AppGroup
import PeerConnectivity
import PropertyLists

struct PeerContextCommand: Subcommand {
  static let description = CommandDescription(
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
    options: [
      .from, .flag("remove", help: "Remove the context for the peer."), OutputFormat.option,
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
