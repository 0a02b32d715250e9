import WormholePeers
import WormholePropertyLists

extension CommandDescription {
  static let peerPairing = CommandDescription(
    name: "pairing",
    abstract: "Pair watches with a phone, as WCSession shows them, or print what is paired.",
    discussion: """
      With the name of a watch that watch is paired, or its entry is changed; a watch without the app \
      has no complication either. It becomes the active one if there is none. With --remove what waits between the \
      two is cancelled, and their contexts are removed. Without a name the pairing is printed, as {"active": ..., \
      "companions": [{"app": ..., "complication": ..., "name": ...}]}.

      As long as nothing was paired, a phone has one watch, 'watch', with the app and its complication; \
      the first that is paired takes its place. WCSession shows the pairing as isPaired, \
      isWatchAppInstalled and isComplicationEnabled. The exit status is 1 if a watch to remove or to activate is \
      not paired.
      """,
    arguments: [
      .optional("watch", .live(.peer), help: "The name of the companion's peer."),
      .value(
        "of", .identifier, named: "peer", standard: Pairing.phone,
        help: "The side whose companion it is: a phone, or a watch."),
      .flag("without-app", help: "Its app is not installed."),
      .flag("without-complication", help: "Its complication is not on display."),
      .flag("remove", help: "End the pairing."),
      .flag("activate", help: "Make it the active one."),
      .jsonAlways,
    ]
  ) { arguments, environment in
    guard let watch = arguments.text("watch") else {
      let state = try arguments.openPairing().state()
      let companions = state.companions.map { companion -> JSONObject in
        [
          "name": companion.name, "app": companion.isAppInstalled,
          "complication": companion.isComplicationEnabled,
        ]
      }
      let line: JSONObject = ["active": state.activeName, "companions": companions]
      return try environment.print(json: line)
    }
    if arguments.has("remove") {
      let pairing = try arguments.openPairing()
      guard try pairing.unpair(watch) else { throw arguments.notPaired("remove \(watch.quoted)") }
      return try environment.reportPairing("\(watch.quoted) is no longer paired with", pairing)
    }
    let pairing = try arguments.openPairing(makes: !arguments.has("activate"))
    if arguments.has("activate") {
      guard try pairing.activate(watch) else {
        throw arguments.notPaired("activate \(watch.quoted)")
      }
    } else {
      try pairing.pair(
        Pairing.Companion(
          name: watch, isAppInstalled: !arguments.has("without-app"),
          isComplicationEnabled: !arguments.has("without-complication")))
    }
    try environment.reportPairing("\(watch.quoted) is paired with", pairing)
  }
  .refusing { arguments in
    let given = ["remove", "activate", "without-app", "without-complication"].filter(arguments.has)
    if let flag = given.first, arguments.text("watch") == nil { return "--\(flag) needs a watch" }
    return given.count > 1 && ["remove", "activate"].contains(given[0])
      ? "--\(given[0]) and --\(given[1]) exclude each other" : nil
  }
}

extension ParsedArguments {
  private var side: String { requiredText("of") }

  /// - Parameter makes: whether the container of a group is made if it is missing.
  fileprivate func openPairing(makes: Bool = false) throws -> Pairing {
    let existing = makes ? nil : try container.openExisting()
    return Pairing(of: side, in: try existing ?? container.open())
  }

  fileprivate func notPaired(_ action: String) -> CommandError {
    CommandError.no(action, because: "it is not paired with \(side.quoted)")
  }
}

extension CommandEnvironment {
  /// Reports the change, and which companion is now active.
  fileprivate func reportPairing(_ deed: String, _ pairing: Pairing) throws {
    let active = try pairing.state().activeName.map { "\($0.quoted) is its active companion" }
    report("\(deed) \(pairing.name.quoted); \(active ?? "it has no active companion")")
  }
}
