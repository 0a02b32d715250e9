package import Dispatch
package import Wormhole
import WormholePropertyLists

/// The companions of one side, and the active one of them: a phone's watches, or a watch's phone.
///
/// In a container in which nothing was ever paired, a phone has one watch, `standardWatch`, and each watch
/// has the phone: paired, installed and active. The first that is paired takes its place.
package struct Pairing: Sendable {
  /// The phone's name among the peers.
  package static let phone = "phone"
  /// The name of a watch that was given no other.
  package static let standardWatch = "watch"

  /// What is known of a companion.
  package struct Companion: Sendable, Hashable {
    /// Its peer's name.
    package var name: String
    /// Whether it has the app.
    package var isAppInstalled: Bool
    /// Whether its complication is on display; the app shows it, so never without the app.
    package var isComplicationEnabled: Bool

    /// Makes a companion.
    package init(name: String, isAppInstalled: Bool = true, isComplicationEnabled: Bool = true) {
      self.name = name
      self.isAppInstalled = isAppInstalled
      self.isComplicationEnabled = isAppInstalled && isComplicationEnabled
    }
  }

  /// All of it at one moment.
  package struct State: Sendable, Hashable {
    /// The companions, in the order in which they were paired.
    package var companions: [Companion]
    /// The name of the active one; nil if there is none.
    package var activeName: String?

    /// The active companion.
    package var active: Companion? { activeName.flatMap { self[$0] } }

    /// The companion of a name; nil if it is not paired.
    package subscript(_ name: String) -> Companion? { companions.first { $0.name == name } }
  }

  /// The side whose companions these are, by its peer's name.
  package let name: String
  /// The container.
  package let container: SharedContainer

  /// The companion as long as nothing was ever paired.
  private var standardCompanion: String { name == Self.phone ? Self.standardWatch : Self.phone }

  /// The pairing of one side; nothing is touched before it is used.
  package init(of name: String, in container: SharedContainer) {
    self.name = name
    self.container = container
  }

  /// What is paired now.
  ///
  /// - Throws: `PeerError`: `damaged`, or what the container refuses.
  /// - Complexity: open, fstat, read, close; no lock.
  package func state() throws -> State {
    try betweenPeers("read \(what)", name) { try state(in: value.read()) }
  }

  /// Pairs a companion, or changes what is known of one that is paired; it becomes the active one if
  /// there was none. The first that is ever paired takes the place of the standard companion.
  ///
  /// - Throws: `PeerError`: `unsupportedValue` for what cannot be a peer's name; `timedOut`, its
  ///   `holder` the process in the way; `damaged`, or what the container refuses. Nothing changes then.
  /// - Complexity: one update of a value.
  package func pair(_ companion: Companion) throws {
    // A companion's properties may have been changed since it was made.
    let companion = Companion(
      name: companion.name, isAppInstalled: companion.isAppInstalled,
      isComplicationEnabled: companion.isComplicationEnabled)
    try change("pair \"\(companion.name)\" with \"\(name)\"", pairs: true) { state in
      try PeerNames.check(companion.name)
      if let index = state.companions.firstIndex(where: { $0.name == companion.name }) {
        state.companions[index] = companion
      } else {
        state.companions.append(companion)
      }
      if state.active == nil { state.activeName = companion.name }
    }
  }

  /// Ends the pairing with a companion; if it was the active one, the one that was paired last becomes
  /// active.
  ///
  /// - Returns: whether it was paired.
  /// - Throws: as `pair`.
  @discardableResult
  package func unpair(_ name: String) throws -> Bool {
    try change("unpair \"\(name)\" from \"\(self.name)\"") { state in
      guard state[name] != nil else { return false }
      state.companions.removeAll { $0.name == name }
      if state.activeName == name { state.activeName = state.companions.last?.name }
      return true
    }
  }

  /// Makes a paired companion the active one.
  ///
  /// - Returns: whether it is paired.
  /// - Throws: as `pair`.
  @discardableResult
  package func activate(_ name: String) throws -> Bool {
    try change("make \"\(name)\" the active companion of \"\(self.name)\"") { state in
      guard state[name] != nil else { return false }
      state.activeName = name
      return true
    }
  }

  /// Calls a handler after each burst of changes, also one that leaves the pairing as it was, because
  /// somebody may have seen the state in between.
  ///
  /// - Parameters:
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: looks at `state()`, which is at least as new as the last change of the burst.
  /// - Returns: the observation; it ends when it is cancelled or released. No change that is made
  ///   after this returns is missed.
  /// - Throws: `PeerError`: what the container refuses.
  package func observe(
    on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
  ) throws -> ObservationToken {
    try betweenPeers("observe \(what)", name) { try value.observe(on: queue) { _ in handler() } }
  }

  // MARK: The value

  private var value: Value { container.own.value(WatchNames.pairing(name)) }

  private var what: String { "what is paired with \"\(name)\"" }

  /// - Parameter pairs: whether it pairs a companion, which takes the place of the standard one.
  private func change<Result: Sendable>(
    _ action: String, pairs: Bool = false,
    _ body: @escaping @Sendable (inout State) throws -> Result
  ) throws -> Result {
    try betweenPeers(action, name) {
      try value.update { content in
        let isFirst = pairs && content == nil
        let old = isFirst ? State(companions: [], activeName: nil) : try state(in: content)
        var state = old
        let result = try body(&state)
        if state != old { content = state.propertyList }
        return result
      }
    }
  }

  private func state(in content: PropertyListValue?) throws -> State {
    guard let content else {
      return State(companions: [Companion(name: standardCompanion)], activeName: standardCompanion)
    }
    guard let state = State(content) else {
      throw PeerError(
        .damaged, "read \(what)", peer: name,
        reason: "it is a property list of another shape (\(value.path))",
        remedy: "remove it: then only \"\(standardCompanion)\" is paired")
    }
    return state
  }
}
