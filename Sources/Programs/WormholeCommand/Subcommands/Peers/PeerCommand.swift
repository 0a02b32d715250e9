import FoundationEssentials
import Wormhole
import WormholePeers
import WormholePropertyLists

extension CommandDescription {
  static let peer = CommandDescription(
    name: "peer",
    abstract: "Send requests to named processes, and messages and files that outlive them.",
    discussion: """
      A peer is a name. A process that serves the name answers requests at once; messages and files \
      wait until a process receives them.
      """,
    subcommands: [
      .peerList, .peerServe, .peerRequest, .peerSend, .peerReceive, .peerContext, .peerTransfers,
      .peerLaunch, .peerPairing,
    ])

  static let peerList = CommandDescription(
    name: "list",
    abstract: "Show the peers, and whether they are reachable.",
    discussion: """
      Listed are the peers that are or were present, and those for which something waits or is \
      registered. With --watch a line is printed for each peer now, and whenever it comes, goes or \
      dies; the command prints 'listening' on standard error, and from then on it misses nothing.

      The states are 'reachable', 'suspended', 'launchable', 'gone' and 'neverSeen'.

      With --watch and a COMMAND, that is run for each line, and a failure is reported; in the end the exit \
      status is that of the last COMMAND that failed. Its environment has WORMHOLE_IDENTIFIER, the peer's name.
      """,
    arguments: [
      .flag("watch", help: "Go on, and print the changes."),
      .count, .timeout, .readyDescriptor,
      .flag("json", help: "Print a line of JSON for each peer instead of text for people."),
      .command(forEach: "line"),
    ]
  ) { arguments, environment in
    guard arguments.has("watch") else {
      guard let container = try arguments.container.openExisting() else { throw ExitStatus.no }
      var faults = NameFaults()
      let peers = try betweenPeers("look for peers") {
        try Peer.all(in: container, &faults)
      }
      return try environment.print(peers.map(ListedPeer.init), arguments, faults)
    }
    try watchPeers(arguments, environment)
  }
  .refusing(ParsedArguments.watchProblem)
}

extension ArgumentDescription {
  static let from = value(
    "from", .live(.peer), named: "name",
    help: "The name of the sender; by default WORMHOLE_PEER in the environment, else "
      + "'\(PeerSession.standardName)'.")

  static let expires = value("expires", .duration, help: "Do not deliver it after this time.")

  static let receipt = flag(
    "receipt",
    help: "Let 'peer transfers' list its outcome: for a day if it was processed, else until it "
      + "is forgotten.")

  static let wait = value(
    "wait", .choice(["processed"]), named: "state",
    help: "Return when it is processed, or with exit status 1 when it has failed.")

  static let peer = operand("peer", .live(.peer), help: "The name of the other peer; any text.")

  static let ownName = operand("name", .live(.peer), help: "The name of the peer; any text.")
}

extension PeerSession {
  /// The sender's name if none is given.
  static let standardName = "wormhole"
}

extension ParsedArguments {
  /// A session under the name that the command line gives, which sends to `queue` first.
  func openSession(
    _ environment: CommandEnvironment, sendingTo queue: String? = nil
  ) throws -> PeerSession {
    let name = sessionName(environment)
    let first = queue.map { Prefetch.queue($0, isOwn: true, sender: EncodedName(name)) }
    return try PeerSession(name, in: container.open(first))
  }

  /// The session without making anything; nil if there is no container.
  func existingSession(_ environment: CommandEnvironment) throws -> PeerSession? {
    try container.openExisting().map { try PeerSession(sessionName(environment), in: $0) }
  }

  func sessionName(_ environment: CommandEnvironment) -> String {
    let variable = environment.variable(CommandVariable.peer).flatMap { $0.isEmpty ? nil : $0 }
    return text("from") ?? variable ?? PeerSession.standardName
  }

  static func waitProblem(_ arguments: ParsedArguments) -> String? {
    arguments.text("timeout") != nil && arguments.text("wait") == nil
      ? "--timeout needs --wait: without it the command does not wait" : nil
  }

  @Sendable static func messageProblem(_ arguments: ParsedArguments) -> String? {
    waitProblem(arguments) ?? valueProblem(arguments)
  }
}

extension QueueEntryStatus {
  /// The word for people and for scripts.
  var word: String { reason != nil ? "failed" : self == .stored ? "waiting" : "\(self)" }

  /// Ends the command after a wait for the outcome of `what`. The exit status shows the outcome, so
  /// its record is no longer needed.
  func end(
    of what: String, _ environment: CommandEnvironment, forgetting forget: () throws -> Void
  ) throws {
    guard isEnd else { throw ExitStatus.deadline }
    try forget()
    guard self != .processed else { return }
    environment.report("\(what) was not processed: \(reason.map { "failed, \($0)" } ?? word)")
    throw ExitStatus.no
  }
}

private func watchPeers(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws {
  let deadline = arguments.deadline()
  let opened = try arguments.container.openToListen(until: deadline, environment)
  let session = try PeerSession(arguments.sessionName(environment), in: opened.container)
  let interruption = try Interruption(endsWithReader: arguments.tail == nil)
  let backlog = Backlog<Peer>()
  let changes = try session.peerChanges()
  let reading = Task {
    // By the bytes of their names: two may be equal as strings.
    var known: [[UInt8]: PeerReachability] = [:]
    for await peers in changes {
      for peer in peers where known[Array(peer.name.utf8)] != peer.reachability {
        backlog.add(peer)
      }
      known = Dictionary(peers.map { (Array($0.name.utf8), $0.reachability) }) { $1 }
    }
  }
  defer { reading.cancel() }
  if !opened.isNew { environment.reportListening(endsWithReader: false) }
  try arguments.handleEach(of: backlog.next, until: deadline, interruption) { peer in
    let reachability = peer.reachability
    return try arguments.hand(
      ListedPeer(peer: peer),
      text: "\(peer.name): \(reachability.word), \(reachability.reason)".onOneLine,
      titled: peer.name.quoted, environment,
      variables: CommandVariable.common(identifier: peer.name, time: nil, sender: nil),
      (interruption, deadline))
  }
}
