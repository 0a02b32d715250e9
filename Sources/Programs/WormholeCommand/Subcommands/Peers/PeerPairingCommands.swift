import WormholePeers
import WormholePropertyLists

extension CommandDescription {
  static let peerPairing = CommandDescription(
    name: "pairing",
    abstract: "Pair watches with a phone, as WCSession shows them.",
    discussion: """
      As long as nothing was paired, a phone has one watch, 'watch', with the app and its complication; \
      the first that is paired takes its place. WCSession shows the pairing as isPaired, \
      isWatchAppInstalled and isComplicationEnabled.
      """,
    subcommands: [.pairingShow, .pairingAdd, .pairingRemove, .pairingSwitch])

  static let pairingShow = CommandDescription(
    name: "show",
    abstract: "Print what is paired, and which companion is active.",
    discussion: """
      {"active": ..., "companions": [{"app": ..., "complication": ..., "name": ...}]}.
      """,
    arguments: [.pairOf, .jsonAlways]
  ) { arguments, environment in
    let state = try arguments.openPairing().state()
    try environment.print(json: state.propertyList)
  }

  static let pairingAdd = CommandDescription(
    name: "add",
    abstract: "Pair a watch with a phone, or change what is known of one that is paired.",
    discussion: """
      A watch without the app has no complication either. It becomes the active one if there is none.
      """,
    arguments: [
      .companion, .pairOf, .flag("without-app", help: "Its app is not installed."),
      .flag("without-complication", help: "Its complication is not on display."),
    ]
  ) { arguments, environment in
    let (pairing, watch) = (try arguments.openPairing(makes: true), arguments.requiredText("watch"))
    try pairing.pair(
      Pairing.Companion(
        name: watch, isAppInstalled: !arguments.has("without-app"),
        isComplicationEnabled: !arguments.has("without-complication")))
    try environment.reportPairing("\(watch.quoted) is paired with", pairing)
  }

  static let pairingRemove = CommandDescription(
    name: "remove",
    abstract: "End the pairing of a watch; exit status 1 if it is not paired.",
    discussion: "What waits between the two is cancelled, and their contexts are removed.",
    arguments: [.companion, .pairOf]
  ) { arguments, environment in
    let (pairing, watch) = (try arguments.openPairing(), arguments.requiredText("watch"))
    guard try pairing.unpair(watch) else { throw arguments.notPaired("remove") }
    try environment.reportPairing("\(watch.quoted) is no longer paired with", pairing)
  }

  static let pairingSwitch = CommandDescription(
    name: "switch",
    abstract: "Make a paired watch the active one; exit status 1 if it is not paired.",
    arguments: [.companion, .pairOf]
  ) { arguments, environment in
    let (pairing, watch) = (try arguments.openPairing(), arguments.requiredText("watch"))
    guard try pairing.activate(watch) else { throw arguments.notPaired("switch to") }
    try environment.reportPairing("\(watch.quoted) is paired with", pairing)
  }
}

extension ArgumentDescription {
  fileprivate static let pairOf = value(
    "of", .identifier, named: "peer", standard: Pairing.phone,
    help: "The side whose companion it is: a phone, or a watch.")

  fileprivate static let companion = operand(
    "watch", .live(.peer), help: "The name of the companion's peer.")
}

extension ParsedArguments {
  private var side: String { requiredText("of") }

  /// - Parameter makes: whether the container of a group is made if it is missing.
  fileprivate func openPairing(makes: Bool = false) throws -> Pairing {
    let existing = makes ? nil : try container.openExisting()
    return Pairing(of: side, in: try existing ?? container.open())
  }

  fileprivate func notPaired(_ verb: String) -> CommandError {
    CommandError.no(
      "\(verb) \(requiredText("watch").quoted)", because: "it is not paired with \(side.quoted)")
  }
}

extension CommandEnvironment {
  /// Reports the change, and which companion is active now.
  fileprivate func reportPairing(_ deed: String, _ pairing: Pairing) throws {
    let active = try pairing.state().activeName.map { "\($0.quoted) is its active companion" }
    report("\(deed) \(pairing.name.quoted); \(active ?? "it has no active companion")")
  }
}

extension Pairing.State {
  fileprivate var propertyList: PropertyListValue {
    .object([
      "active": activeName,
      "companions": companions.map {
        PropertyListValue.object([
          "name": $0.name, "app": $0.isAppInstalled, "complication": $0.isComplicationEnabled,
        ])
      },
    ])
  }
}
