import Dispatch
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeTerminals

extension CommandDescription {
  static let peerServe = CommandDescription(
    name: "serve",
    abstract: "Answer requests to a peer with a command.",
    discussion: """
      The command runs for each request, one after the other: it reads the request on standard input \
      and prints the reply, both as JSON; without output the reply is {}. When it fails, the sender \
      gets an error, whose reason is the command's output or, without any, its exit status. \
      WORMHOLE_SENDER in its environment names the sender. When the sender stops waiting, the command \
      gets SIGTERM; when this program is killed, so is the command.

      Only one process serves a name: this one waits up to 10 seconds for another one to end, and \
      replaces one that is stopped. It prints 'listening' on standard error once it can be asked.
      """,
    arguments: [
      .ownName, .count, .timeout, .readyDescriptor,
      .command(help: "Reads the request and prints the reply, both as JSON."),
    ]
  ) { arguments, environment in
    let name = arguments.requiredText("name")
    let deadline = arguments.deadline()
    let session = try PeerSession(name, in: arguments.container.open())
    // Nil once another process is reached under the name.
    let backlog = Backlog<PeerRequest?>()
    session.handleRequests(on: DispatchQueue(label: "wormhole.requests")) { backlog.add($0) }
    session.onReplacement { backlog.add(nil) }
    let isServing = Atomic(false)
    let interruption = try Interruption {
      // While this process was stopped, another one may have replaced it.
      if isServing.load(ordering: .relaxed) { try session.confirmActive() }
    }
    defer { session.close() }
    let activated: Void? = try noticingUse { try interruption.wait { try session.activate() } }
    guard activated != nil else { throw ExitStatus.no }
    isServing.store(true, ordering: .relaxed)
    environment.reportListening(endsWithReader: false)
    let server = PeerServer(
      name: name, command: try arguments.requiredCommand(),
      interruption: interruption, environment: environment)
    try arguments.handleEach(of: backlog.next, until: deadline, interruption) { request in
      guard let request else {
        try session.confirmActive()
        return nil
      }
      try server.answer(request)
      return .done
    }
  }
}

private struct PeerServer {
  let name: String
  let command: ExternalCommand
  let interruption: Interruption
  let environment: CommandEnvironment

  /// A reason is a sentence; a longer output belongs in a log.
  private static let maximumReasonCharacters = 1_000

  func answer(_ request: PeerRequest) throws {
    guard !request.isCancelled else { return }
    do {
      do { try reply(to: request) } catch let error as CommandError {
        environment.report(error)
        try request.fail("\(error)")
      }
    } catch let error as WormholeError {
      // The sender has ended, for example; the next request is not affected.
      environment.report(error)
    }
  }

  private func reply(to request: PeerRequest) throws {
    let unwanted = try OneResult<Bool>()
    request.onCancel { unwanted.put(true) }
    let outcome = try command.run(
      input: try OutputFormat.json.bytes(request.value, of: "the request"),
      variables: [CommandVariable.peer: name, CommandVariable.sender: request.sender],
      collectsOutput: true, interruption: interruption, unwanted: unwanted)
    let printed = String(decoding: outcome.output, as: UTF8.self).trimmed
    if let failure = command.failure(outcome.termination) {
      try request.fail(
        printed.isEmpty ? failure : String(printed.prefix(Self.maximumReasonCharacters)))
    } else if request.expectsReply, !printed.isEmpty {
      let source = "the output of \(command.words[0])"
      try request.reply(JSONInput.read(outcome.output, source: source))
    } else {
      try request.reply([:])
    }
  }
}
