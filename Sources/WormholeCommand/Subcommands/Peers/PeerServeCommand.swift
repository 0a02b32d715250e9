import AppGroup
import Dispatch
import PeerConnectivity
import Synchronization

struct PeerServeCommand: Subcommand {
  static let description = CommandDescription(
    name: "serve",
    abstract: "Answer requests to a peer with a command.",
    discussion: """
      The command is run for each request, one after the other: it reads the request on standard \
      input and prints the reply, both as JSON; who prints nothing replies {}. When it fails, the \
      sender gets an error, whose reason is what the command printed, else its status. \
      WORMHOLE_SENDER in its environment is who asks. When the sender does not wait any more, the \
      command is told to end (SIGTERM); when this program is killed, so is the command.

      One process serves a name at a time: another is waited for up to 10 seconds, and one that is \
      stopped is replaced. The command says 'listening' on standard error once it can be asked.
      """,
    positionals: [.ownName],
    options: [.count, .timeout],
    tail: TailDescription(
      name: "command", help: "Reads the request and prints the reply, both as JSON."))

  static let commandPath = ["peer", "serve"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let name = arguments.requiredText("name")
    let deadline = arguments.deadline()
    let session = try PeerSession(arguments.container.open(), name: name)
    let inbox = Inbox<PeerRequest>()
    session.requests.handle(on: DispatchQueue(label: "wormhole.requests")) { inbox.put($0) }
    let isServing = Atomic(false)
    let interruption = try Interruption {
      // Stopped, it was replaced perhaps.
      if isServing.load(ordering: .relaxed) { try session.confirmActive() }
    }
    defer { session.invalidate() }
    let activated: Void? = try interruption.wait { try session.activate() }
    guard activated != nil else { return .no }
    isServing.store(true, ordering: .relaxed)
    environment.tellListening(endsWithReader: false)
    let server = PeerServer(
      name: name, command: ExternalCommand(words: arguments.tail ?? []),
      interruption: interruption, environment: environment)
    return try Taking(count: arguments.count("count"), interruption: interruption).each {
      inbox.next(until: deadline)
    } handle: { request in
      try server.answer(request)
      return .done
    }
  }
}
