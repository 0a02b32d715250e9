import FoundationEssentials
import Wormhole
import WormholePeers
import WormholePropertyLists

extension CommandDescription {
  static let peerList = CommandDescription(
    name: "list",
    abstract: "Show the peers, and whether they are reachable.",
    discussion: """
      Listed are the peers that are or were present, and those for which something waits or is \
      registered. With --watch a line is printed for each peer now, and whenever it comes, goes or \
      dies; the command prints 'listening' on standard error, and from then on it misses nothing.

      The states are 'reachable', 'suspended', 'launchable', 'gone' and 'neverSeen'.
      """,
    options: [
      .flag("watch", help: "Go on, and print the changes."), .count, .timeout, .readyDescriptor,
      .flag("json", help: "Print a line of JSON for each peer instead of text for people."),
    ]
  ) { arguments, environment in
    guard arguments.has("watch") else {
      let peers = try arguments.existingSession(environment)?.peers() ?? []
      if arguments.has("json") {
        for peer in peers { try environment.print(json: peer.propertyList) }
      } else {
        let rows = peers.map { [$0.name, $0.reachability.word, $0.reachability.reason] }
        let table = TextTable(["PEER", "STATE", "WHY"], rows, columns: environment.tableColumns)
        try environment.print(table.rendered)
      }
      return
    }
    try watchPeers(arguments, environment)
  }
  .refusing { arguments in
    !arguments.has("watch") && (arguments.text("count") ?? arguments.text("timeout")) != nil
      ? "--count and --timeout need --watch" : nil
  }
}

private func watchPeers(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws {
  let deadline = arguments.deadline()
  let opened = try arguments.container.openToListen(until: deadline, environment)
  let session = try PeerSession(arguments.sessionName(environment), in: opened.container)
  let interruption = try Interruption(endsWithReader: true)
  let backlog = Backlog<Peer>()
  let changes = try session.peerChanges()
  let reading = Task {
    var known: [String: PeerReachability] = [:]
    for await peers in changes {
      for peer in peers where known[peer.name] != peer.reachability { backlog.add(peer) }
      known = Dictionary(peers.map { ($0.name, $0.reachability) }) { $1 }
    }
  }
  defer { reading.cancel() }
  if !opened.isNew { environment.tellListening(endsWithReader: false) }
  try arguments.handleEach(of: backlog.next, until: deadline, interruption) { peer in
    try environment.print(
      line: arguments.has("json")
        ? JSONWriter.string(peer.propertyList)
        : "\(peer.name.onOneLine): \(peer.reachability.word), \(peer.reachability.reason)"
          .withoutControlCharacters)
    return .done
  }
}

extension Peer {
  /// Keys are only ever added; one whose value is unknown is left out.
  var propertyList: PropertyListValue {
    var member: PresenceMember?
    var end: Date?
    switch reachability {
    case .reachable(let present), .suspended(let present): member = present
    case .gone(let last, let ended): (member, end) = (last, ended)
    case .launchable, .neverSeen: break
    }
    return .object([
      "name": name, "state": reachability.word, "reason": reachability.reason,
      "process": member?.processID, "program": member?.program,
      "since": member?.since.wholeSeconds, "ended": end?.wholeSeconds,
    ])
  }
}
