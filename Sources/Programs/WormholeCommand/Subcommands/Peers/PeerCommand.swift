import Wormhole
import WormholePeers

extension CommandDescription {
  /// The commands for peers: processes that others know by a name.
  static let peer = CommandDescription(
    name: "peer",
    abstract: "Send requests to named processes, and messages and files that outlive them.",
    discussion: """
      A peer is a name. A process that serves the name answers requests at once; messages and files \
      wait until a process receives them.
      """,
    subcommands: [
      .peerList, .peerServe, .peerRequest, .peerSend, .peerReceive, .peerContext, .peerTransfer,
      .peerReceiveFiles, .peerOutstanding, .peerForget, .peerRetry, .peerCancel, .peerLaunch,
    ], run: nil)
}

/// The variables in the environment of a command that runs for a peer.
enum PeerVariable {
  /// The name of the peer; `wormhole` takes it as its own name, too.
  static let name = "WORMHOLE_PEER"
  static let transfer = "WORMHOLE_TRANSFER"
}

extension OptionDescription {
  static let from = value(
    "from", "name", .live(.peer),
    help: "The name of the sender; by default WORMHOLE_PEER in the environment, else "
      + "'\(PeerSession.standardName)'.")

  static let expires = value(
    "expires", "seconds", .seconds, help: "Do not deliver it after this time.")

  static let receipt = flag(
    "receipt",
    help: "Let 'peer outstanding' list its outcome: for a day if it was processed, else until it "
      + "is forgotten.")

  static let wait = value(
    "wait", "state", .choice(["processed"]),
    help: "Return when it is processed, or with exit status 1 when it has failed.")
}

extension PositionalDescription {
  static let peer = PositionalDescription(
    name: "peer", help: "The name of the other peer; any text.", kind: .live(.peer))

  static let ownName = PositionalDescription(
    name: "name", help: "The name of the peer; any text.", kind: .live(.peer))
}

extension PeerSession {
  /// The sender's name if none is given.
  static let standardName = "wormhole"
}

extension ParsedArguments {
  /// A session under the name that the command line gives.
  func openSession(_ environment: CommandEnvironment) throws -> PeerSession {
    try PeerSession(sessionName(environment), in: container.open())
  }

  /// The same without making anything; nil where there is no container.
  func existingSession(_ environment: CommandEnvironment) throws -> PeerSession? {
    try container.openExisting().map { try PeerSession(sessionName(environment), in: $0) }
  }

  /// The name under which this program sends.
  func sessionName(_ environment: CommandEnvironment) -> String {
    let variable = environment.variable(PeerVariable.name).flatMap { $0.isEmpty ? nil : $0 }
    return text("from") ?? variable ?? PeerSession.standardName
  }

  /// The problem with `--wait` and `--timeout`, or nil.
  static func waitProblem(_ arguments: ParsedArguments) -> String? {
    arguments.text("timeout") != nil && arguments.text("wait") == nil
      ? "--timeout needs --wait: without it the command does not wait" : nil
  }

  /// The same for a command that takes a value, too.
  @Sendable static func messageProblem(_ arguments: ParsedArguments) -> String? {
    waitProblem(arguments) ?? valueProblem(arguments)
  }
}

extension QueueEntryStatus {
  /// For machines; the values are never changed.
  var word: String {
    switch self {
    case .stored: "stored"
    case .taken: "taken"
    case .processed: "processed"
    case .cancelled: "cancelled"
    case .superseded: "superseded"
    case .expired: "expired"
    case .failed: "failed"
    }
  }

  /// Ends the command after a wait for the outcome.
  ///
  /// - Parameter what: the message or file, as the subject of a sentence.
  func end(of what: String, _ environment: CommandEnvironment) throws(ExitStatus) {
    guard isEnd else { throw .deadline }
    guard self != .processed else { return }
    environment.tell("\(what) was not processed: \(reason.map { "failed, \($0)" } ?? word)")
    throw .no
  }
}
