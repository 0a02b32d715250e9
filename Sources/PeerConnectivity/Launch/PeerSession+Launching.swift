public import AppGroup

extension PeerSession {
  /// Registers how a peer is started; its own peer as a rule.
  ///
  /// The registration is followed only while nobody but this user can change it. Therefore none can be
  /// made in a container that a Unix group shares: its members could have each other's programs run.
  ///
  /// - Throws: `PeerError`: `unsupportedValue` for a program that is no absolute path, text with a NUL,
  ///   a variable that is empty or has a "=" in its name, or a negative budget; `notLaunched` where
  ///   others could change it; or what the container refuses.
  /// - Complexity: replaces one value.
  public static func setLaunch(
    _ launch: PeerLaunch, of peer: String, in container: SharedContainer
  ) throws {
    let action = "register how to start \"\(peer)\""
    try betweenPeers(action, peer) {
      try PeerNames.check(peer)
      if let reason = launch.unsuitability {
        throw PeerError(.unsupportedValue, action, peer: peer, reason: reason)
      }
      let value = container.own.value(PeerNames.launch(peer))
      try value.replace(with: launch.propertyList)
      if case .exposed(let exposure) = try value.privateContent() {
        try value.remove()
        throw PeerError(
          .notLaunched, action, peer: peer, reason: "others could change it: \(exposure)",
          remedy: "use a container that only this user may write to")
      }
    }
  }

  /// How a peer is started; nil if nobody has registered it.
  ///
  /// - Throws: `PeerError`: `damaged` for what is no registration, or what the container refuses.
  /// - Complexity: reads one value.
  public static func launch(of peer: String, in container: SharedContainer) throws -> PeerLaunch? {
    let action = "read how to start \"\(peer)\""
    return try betweenPeers(action, peer) {
      try PeerNames.check(peer)
      let value = container.own.value(PeerNames.launch(peer))
      return try value.read(limits: PeerLaunch.limits).map { content in
        guard let launch = PeerLaunch(content) else {
          throw PeerLaunch.damaged(action, peer, value.path)
        }
        return launch
      }
    }
  }

  /// Removes how a peer is started. How often it was today is remembered.
  public static func removeLaunch(of peer: String, in container: SharedContainer) throws {
    try betweenPeers("remove how to start \"\(peer)\"", peer) {
      try PeerNames.check(peer)
      try container.own.value(PeerNames.launch(peer)).remove()
    }
  }

  /// How often a peer may still be started today; nil for no limit or no registration.
  ///
  /// - Complexity: reads two values.
  public static func remainingLaunches(
    of peer: String, in container: SharedContainer
  ) throws -> Int? {
    guard let budget = try launch(of: peer, in: container)?.budgetPerDay else { return nil }
    return try betweenPeers("read how often \"\(peer)\" was started", peer) {
      max(0, budget - (try LaunchBook(peer, container).read().count(at: .now())))
    }
  }

  /// The file with what a peer's program printed since it was started last; nil if it never was.
  public static func launchOutput(
    of peer: String, in container: SharedContainer
  ) throws -> String? {
    try betweenPeers("find what \"\(peer)\" printed", peer) {
      try PeerNames.check(peer)
      let book = LaunchBook(peer, container)
      guard let start = try book.read().start, let place = book.place(of: start),
        try place.output() != nil
      else { return nil }
      return place.outputPath
    }
  }
}
