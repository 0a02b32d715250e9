package import Dispatch
package import Wormhole
import WormholePropertyLists

/// The companions of one side, and the active one: a phone's watches, or a watch's phone.
///
/// In a container that never had a pairing, a phone has one watch, `standardWatch`, and each watch
/// has the phone: paired, installed and active. The first paired companion replaces it.
package struct Pairing: Sendable {
  package static let phone = "phone"
  /// The name of a watch that has no other name.
  package static let standardWatch = "watch"

  package struct Companion: Sendable, Hashable {
    package var name: String
    package var isAppInstalled: Bool
    /// Whether its complication is on display; always false without the app, which shows it.
    package var isComplicationEnabled: Bool

    package init(name: String, isAppInstalled: Bool = true, isComplicationEnabled: Bool = true) {
      self.name = name
      self.isAppInstalled = isAppInstalled
      self.isComplicationEnabled = isAppInstalled && isComplicationEnabled
    }
  }

  package struct State: Sendable, Hashable {
    /// The companions, in the order in which they were paired.
    package var companions: [Companion]
    /// The name of the active one; nil if there is none.
    package var activeName: String?
    /// Former companions, as long as something older may wait between them and this side.
    var leaving: [String] = []

    package var active: Companion? { activeName.flatMap { self[$0] } }

    fileprivate func isLeaving(_ name: String) -> Bool {
      leaving.contains { PeerNames.areSame($0, name) }
    }

    package subscript(_ name: String) -> Companion? {
      companions.first { PeerNames.areSame($0.name, name) }
    }
  }

  /// The side whose companions these are, by its peer's name.
  package let name: String
  package let container: SharedContainer

  private var standardCompanion: String { name == Self.phone ? Self.standardWatch : Self.phone }

  /// The pairing of one side; nothing is read or written before it is used.
  package init(of name: String, in container: SharedContainer) {
    self.name = name
    self.container = container
  }

  /// The current pairing; costs open, fstat, read and close, without a lock.
  package func state() throws -> State {
    try betweenPeers("read \(what)", name) { try state(in: value.read()) }
  }

  /// Pairs a companion, or changes the properties of a paired one; it becomes the active one if
  /// there was none. The first companion ever paired replaces the standard companion. What an
  /// interrupted `unpair` left is cancelled first.
  ///
  /// - Throws: `WormholeError`: `unsupportedValue` for an invalid name, or its own; `timedOut`, its
  ///   `holder` the process in the way; `damaged`, or a container error. Then nothing changes.
  package func pair(_ companion: Companion) throws {
    // A companion's properties may have been changed since it was made.
    let companion = Companion(
      name: companion.name, isAppInstalled: companion.isAppInstalled,
      isComplicationEnabled: companion.isComplicationEnabled)
    let action = "pair \"\(companion.name)\" with \"\(name)\""
    while try !add(companion, action) { try cancelAll(with: companion.name, action) }
  }

  /// - Returns: false while something from an earlier pairing with it may wait.
  private func add(_ companion: Companion, _ action: String) throws -> Bool {
    try change(action, pairs: true) { state in
      guard !state.isLeaving(companion.name) else { return false }
      try PeerNames.check(companion.name)
      guard !PeerNames.areSame(companion.name, name) else {
        throw WormholeError(
          .unsupportedValue, "pair \"\(name)\"", peer: name,
          reason: "nothing is paired with itself",
          remedy: "name its companion")
      }
      let index = state.companions.firstIndex { PeerNames.areSame($0.name, companion.name) }
      if let index {
        state.companions[index] = companion
      } else {
        state.companions.append(companion)
      }
      if state.active == nil { state.activeName = companion.name }
      return true
    }
  }

  /// Ends the pairing with a companion, and returns whether it was paired. If it was the active
  /// one, the companion paired last becomes active. What waits between the two is cancelled, so
  /// that a new pairing begins clean. If this call is interrupted, the next one, or a new pairing,
  /// continues it.
  @discardableResult
  package func unpair(_ name: String) throws -> Bool {
    let action = "unpair \"\(name)\" from \"\(self.name)\""
    let wasPaired = try change(action) { state in
      guard state[name] != nil else { return state.isLeaving(name) }
      state.leaving.append(name)
      state.companions.removeAll { PeerNames.areSame($0.name, name) }
      if PeerNames.areSame(state.activeName, name) {
        state.activeName = state.companions.last?.name
      }
      return true
    }
    if wasPaired { try cancelAll(with: name, action) }
    return wasPaired
  }

  /// Cancels what waits between this side and a former companion.
  private func cancelAll(with name: String, _ action: String) throws {
    for (sender, receiver) in [(self.name, name), (name, self.name)] {
      // Another call may end it, and begin a new pairing, at any moment.
      try PeerSession(sender, in: container).takeBackAll(for: receiver) {
        try state().isLeaving(name)
      }
    }
    try change(action) { $0.leaving.removeAll { PeerNames.areSame($0, name) } }
  }

  /// Makes a paired companion the active one; returns whether it is paired.
  @discardableResult
  package func activate(_ name: String) throws -> Bool {
    try change("make \"\(name)\" the active companion of \"\(self.name)\"") { state in
      guard state[name] != nil else { return false }
      state.activeName = name
      return true
    }
  }

  /// Calls a handler after each burst of changes made after this call returns, even one that leaves
  /// the pairing unchanged, because a process may have seen the state in between.
  ///
  /// - Parameter handler: looks at `state()`, which is at least as new as the last change of the
  /// burst.
  package func observe(
    on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
  ) throws -> ObservationToken {
    try betweenPeers("observe \(what)", name) { try value.observe(on: queue) { _ in handler() } }
  }

  // MARK: The value

  private var value: PlainValue { container.own.value(PeerNames.pairing(name)) }

  private var what: String { "what is paired with \"\(name)\"" }

  /// - Parameter pairs: whether it pairs a companion, which replaces the standard one.
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
        // Compared as property lists, which differ if the bytes of a name do.
        let new = state.propertyList
        if new != old.propertyList { content = new }
        return result
      }
    }
  }

  private func state(in content: PropertyListValue?) throws -> State {
    guard let content else {
      return State(companions: [Companion(name: standardCompanion)], activeName: standardCompanion)
    }
    guard let state = State(content) else {
      throw WormholeError(
        .damaged, "read \(what)", peer: name,
        reason: "it is a property list of another shape (\(value.path))",
        remedy: "remove it: then only \"\(standardCompanion)\" is paired")
    }
    return state
  }
}

extension Pairing.State {
  /// `companions`, a list of dictionaries with `name`, `isAppInstalled` and `isComplicationEnabled`;
  /// `active`, a name, if one is; `leaving`, a list of names, while there are any.
  var propertyList: PropertyListValue {
    var value: PropertyListValue = [
      "companions": .array(
        companions.map { companion in
          [
            "name": .string(companion.name),
            "isAppInstalled": .boolean(companion.isAppInstalled),
            "isComplicationEnabled": .boolean(companion.isComplicationEnabled),
          ]
        })
    ]
    if let activeName { value["active"] = .string(activeName) }
    if !leaving.isEmpty { value["leaving"] = .array(leaving.map { .string($0) }) }
    return value
  }

  init?(_ value: PropertyListValue) {
    guard let list = value["companions"]?.arrayValue else { return nil }
    companions = list.compactMap { entry in
      guard let name = entry["name"]?.stringValue else { return nil }
      return Pairing.Companion(
        name: name, isAppInstalled: entry["isAppInstalled"]?.boolValue ?? true,
        isComplicationEnabled: entry["isComplicationEnabled"]?.boolValue ?? true)
    }
    guard companions.count == list.count else { return nil }
    leaving = value["leaving"]?.arrayValue?.compactMap(\.stringValue) ?? []
    activeName = value["active"]?.stringValue
    if active == nil { activeName = nil }
  }
}
