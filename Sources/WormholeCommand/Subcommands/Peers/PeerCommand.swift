import AppGroup
import FoundationEssentials
import PeerConnectivity
import PropertyLists

/// The group of commands for peers: processes that are known by name.
enum PeerCommand {
  static let description = CommandDescription(
    name: "peer",
    abstract: "Ask named processes, and hand over messages and files that outlive them.",
    discussion: """
      A peer is a name. Whoever serves it answers requests at once; messages and files wait for \
      whoever receives them, also when nobody does yet.
      """,
    subcommands: [
      PeerListCommand.description, PeerServeCommand.description, PeerRequestCommand.description,
      PeerSendCommand.description, PeerReceiveCommand.description,
      PeerContextCommand.description, PeerTransferCommand.description,
      PeerReceiveFilesCommand.description, PeerOutstandingCommand.description,
      PeerForgetCommand.description, PeerRetryCommand.description, PeerCancelCommand.description,
      PeerLaunchCommand.description, PeerPairCommand.description, PeerUnpairCommand.description,
      PeerSwitchCommand.description,
    ])

  /// Those that run.
  static let subcommands: [any Subcommand] = [
    PeerListCommand(), PeerServeCommand(), PeerRequestCommand(), PeerSendCommand(),
    PeerReceiveCommand(), PeerContextCommand(), PeerTransferCommand(),
    PeerReceiveFilesCommand(), PeerOutstandingCommand(), PeerForgetCommand(),
    PeerRetryCommand(), PeerCancelCommand(),
    PeerLaunchSetCommand(), PeerLaunchShowCommand(), PeerLaunchRemoveCommand(),
    PeerPairCommand(), PeerUnpairCommand(), PeerSwitchCommand(),
  ]
}

/// What commands that are run for a peer find in their environment.
enum PeerVariable {
  /// The name of the peer: commands take it for their own name, too.
  static let name = "WORMHOLE_PEER"
  static let sender = "WORMHOLE_SENDER"
  static let transfer = "WORMHOLE_TRANSFER"
  /// 1 for what was delivered before; else 0.
  static let redelivery = "WORMHOLE_REDELIVERY"
  /// How often it was delivered, this time included.
  static let deliveries = "WORMHOLE_DELIVERIES"

  /// - Returns: "NAME=value"; a NUL, which would end it, is left out.
  static func assignment(_ name: String, _ value: String) -> String {
    "\(name)=\(value.filter { $0 != "\0" })"
  }
}

extension OptionDescription {
  static let from = value(
    "from", "name", .identifier,
    help: "Under this peer's name; without it, that of WORMHOLE_PEER in the environment, else "
      + "'\(PeerSession.standardName)'.")

  static let expires = value(
    "expires", "seconds", .seconds, help: "Do not deliver it any more after this time.")

  static let receipt = flag(
    "receipt",
    help: "Have 'peer outstanding' tell its end: for a day if it is processed, else until it is "
      + "forgotten.")

  static let wait = value(
    "wait", "state", .choice(["processed"]),
    help: "Return only when it is processed, or has ended otherwise with exit status 1.")
}

extension PositionalDescription {
  static let peer = PositionalDescription(
    name: "peer", help: "The name of the other peer; any text.", kind: .identifier)

  static let ownName = PositionalDescription(
    name: "name", help: "The name of the peer; any text.", kind: .identifier)
}

extension PeerSession {
  /// Who speaks when nobody says who.
  static let standardName = "wormhole"
}

extension ParsedArguments {
  /// A session under the name that was given.
  func openSession(_ environment: CommandEnvironment) throws -> PeerSession {
    try PeerSession(container.open(), name: sessionName(environment))
  }

  /// The same for somebody who makes nothing; nil where there is no container.
  func existingSession(_ environment: CommandEnvironment) throws -> PeerSession? {
    try container.openExisting().map { try PeerSession($0, name: sessionName(environment)) }
  }

  /// Under which name this program speaks.
  func sessionName(_ environment: CommandEnvironment) -> String {
    let variable = environment.variable(PeerVariable.name).flatMap { $0.isEmpty ? nil : $0 }
    return text("from") ?? variable ?? PeerSession.standardName
  }

  /// What is wrong with `--wait` and `--timeout`.
  static func waitProblem(_ arguments: ParsedArguments) -> String? {
    arguments.text("timeout") != nil && arguments.text("wait") == nil
      ? "--timeout is for --wait: without it nothing is waited for" : nil
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

  var reason: String? {
    if case .failed(let reason) = self { reason } else { nil }
  }

  /// What the program exits with that has waited for the end.
  ///
  /// - Parameter what: what was sent, as the subject of a sentence.
  func exitStatus(of what: String, _ environment: CommandEnvironment) -> ExitStatus {
    guard isEnd else { return .deadline }
    guard self != .processed else { return .done }
    environment.tell("\(what) was not processed: \(reason.map { "failed, \($0)" } ?? word)")
    return .no
  }
}
