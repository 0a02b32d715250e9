import AppGroup
import PeerConnectivity
import PropertyLists

extension OptionDescription {
  static let pairOf = value(
    "of", "peer", .identifier, standard: "phone", help: "Whose companion it is.")
}

extension PositionalDescription {
  static let watch = PositionalDescription(
    name: "watch", help: "The name of the companion's peer.", kind: .identifier)
}

extension ParsedArguments {
  /// - Parameter makes: whether the container of a group is made where it is missing.
  fileprivate func openPairing(makes: Bool = false) throws -> PeerPairing {
    let name = text("of") ?? "phone"
    let existing = makes ? nil : try container.openExisting()
    // As WCSession has it: a watch that nobody has paired has the phone.
    return PeerPairing(
      try existing ?? container.open(), of: name,
      defaultCompanion: name == "phone" ? "watch" : "phone")
  }

  fileprivate func notPaired(_ verb: String) -> CommandError {
    CommandError(
      verb: verb, object: requiredText("watch").quoted,
      reason: "it is not paired with \((text("of") ?? "phone").quoted)", status: .no)
  }
}

struct PeerPairCommand: Subcommand {
  static let description = CommandDescription(
    name: "pair",
    abstract: "Pair a watch with a phone, or change what is known of it.",
    discussion: """
      What WCSession shows as isPaired, isWatchAppInstalled and isComplicationEnabled. As long as \
      nobody has paired anything, a phone has one watch, 'watch', with both; the first that is paired \
      takes its place. A watch without the app has no complication either. Without a name what is \
      paired is printed: {"active": ..., "companions": [{"app": ..., "complication": ..., "name": \
      ...}]}.
      """,
    positionals: [
      PositionalDescription(
        name: "watch", help: "The name of the companion's peer.", kind: .identifier,
        isOptional: true)
    ],
    options: [
      .pairOf, .flag("without-app", help: "Its app is not installed."),
      .flag("without-complication", help: "Its complication is not on display."),
    ])

  static let commandPath = ["peer", "pair"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    guard let watch = arguments.text("watch") else {
      let state = try arguments.openPairing().state()
      try environment.print(line: JSONWriter.string(state.propertyList))
      return .done
    }
    let pairing = try arguments.openPairing(makes: true)
    try pairing.pair(
      PeerPairing.Companion(
        name: watch, isAppInstalled: !arguments.has("without-app"),
        isComplicationEnabled: !arguments.has("without-complication")))
    try environment.tellPaired("\(watch.quoted) is paired with", pairing)
    return .done
  }
}

struct PeerUnpairCommand: Subcommand {
  static let description = CommandDescription(
    name: "unpair",
    abstract: "End the pairing of a watch; exit status 1 if it is not paired.",
    positionals: [.watch],
    options: [.pairOf])

  static let commandPath = ["peer", "unpair"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let (pairing, watch) = (try arguments.openPairing(), arguments.requiredText("watch"))
    guard try pairing.unpair(watch) else { throw arguments.notPaired("unpair") }
    try environment.tellPaired("\(watch.quoted) is no longer paired with", pairing)
    return .done
  }
}

struct PeerSwitchCommand: Subcommand {
  static let description = CommandDescription(
    name: "switch",
    abstract: "Make a paired watch the active one; exit status 1 if it is not paired.",
    positionals: [.watch],
    options: [.pairOf])

  static let commandPath = ["peer", "switch"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let (pairing, watch) = (try arguments.openPairing(), arguments.requiredText("watch"))
    guard try pairing.activate(watch) else { throw arguments.notPaired("switch to") }
    try environment.tellPaired("\(watch.quoted) is paired with", pairing)
    return .done
  }
}

extension CommandEnvironment {
  /// Says what is so now: what was done, and which companion is the active one.
  fileprivate func tellPaired(_ deed: String, _ pairing: PeerPairing) throws {
    let active = try pairing.state().activeName.map { "\($0.quoted) is its active companion" }
    tell("\(deed) \(pairing.name.quoted); \(active ?? "it has no active companion")")
  }
}

extension PeerPairing.State {
  /// Keys are only ever added.
  fileprivate var propertyList: PropertyListValue {
    .object([
      "active": activeName.map { .string($0) },
      "companions": .array(
        companions.map {
          [
            "name": .string($0.name), "app": .boolean($0.isAppInstalled),
            "complication": .boolean($0.isComplicationEnabled),
          ]
        }),
    ])
  }
}
