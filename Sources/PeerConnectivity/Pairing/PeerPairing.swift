public import AppGroup
public import Dispatch
import PropertyLists
import Synchronization

/// Which companions a peer has, and which of them is the active one; a watch and its phone, say.
///
/// In a container in which nobody ever paired anything, a peer has one companion of the default name,
/// paired, installed and active. The first that is paired takes its place.
public struct PeerPairing: Sendable {
  /// What is known of a companion.
  public struct Companion: Sendable, Hashable {
    /// Its peer's name.
    public var name: String
    /// Whether its app is there.
    public var isAppInstalled: Bool
    /// Whether its complication is on display; the app shows it, so never without the app.
    public var isComplicationEnabled: Bool

    /// Makes a companion.
    public init(name: String, isAppInstalled: Bool = true, isComplicationEnabled: Bool = true) {
      self.name = name
      self.isAppInstalled = isAppInstalled
      self.isComplicationEnabled = isAppInstalled && isComplicationEnabled
    }
  }

  /// All of it at one moment.
  public struct State: Sendable, Hashable {
    /// The companions, in the order in which they were paired.
    public var companions: [Companion]
    /// The name of the active one; nil if there is none.
    public var activeName: String?

    /// The active companion.
    public var active: Companion? { companions.first { $0.name == activeName } }
  }

  /// The container.
  public let container: SharedContainer
  /// Whose companions.
  public let name: String
  /// The companion when nothing was ever paired.
  public let defaultCompanion: String

  /// The pairing of a peer; nothing is touched before it is used.
  public init(_ container: SharedContainer, of name: String, defaultCompanion: String) {
    self.container = container
    self.name = name
    self.defaultCompanion = defaultCompanion
  }

  /// What is paired now.
  ///
  /// - Throws: `PeerError`: `damaged`, or what the container refuses.
  /// - Complexity: open, fstat, read, close; no lock.
  public func state() throws -> State {
    try betweenPeers("read \(what)", name) { try state(in: value.read()) }
  }

  /// Pairs a companion, or changes what is known of one that is; it becomes the active one if there was
  /// none. The first that anybody pairs takes the place of the default companion, which nobody paired.
  ///
  /// - Throws: `PeerError`: `unsupportedValue` for what cannot be a peer's name; `timedOut`, its
  ///   `holder` who is in the way; `damaged`, or what the container refuses. Nothing changes then.
  /// - Complexity: one update of a value.
  public func pair(_ companion: Companion) throws {
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

  /// Ends the pairing with a companion; if it was the active one, the one that was paired last is.
  ///
  /// - Returns: whether it was paired.
  /// - Throws: as `pair`.
  @discardableResult
  public func unpair(_ name: String) throws -> Bool {
    try change("unpair \"\(name)\" from \"\(self.name)\"") { state in
      guard let index = state.companions.firstIndex(where: { $0.name == name }) else {
        return false
      }
      state.companions.remove(at: index)
      if state.activeName == name { state.activeName = state.companions.last?.name }
      return true
    }
  }

  /// Makes a paired companion the active one.
  ///
  /// - Returns: whether it is paired.
  /// - Throws: as `pair`.
  @discardableResult
  public func activate(_ name: String) throws -> Bool {
    try change("make \"\(name)\" the active companion of \"\(self.name)\"") { state in
      guard state.companions.contains(where: { $0.name == name }) else { return false }
      state.activeName = name
      return true
    }
  }

  /// Calls a handler with what is paired, whenever that has changed.
  ///
  /// - Parameters:
  ///   - queue: where the handler is called, one call at a time.
  ///   - handler: gets the latest after any burst of changes; or an error when it cannot be read.
  /// - Returns: the observation; it ends when it is cancelled or forgotten. No change that is made
  ///   after this returns is missed.
  /// - Throws: `PeerError`, as `state()`.
  public func observe(
    on queue: DispatchQueue, _ handler: @escaping @Sendable (Result<State, PeerError>) -> Void
  ) throws -> Observation {
    // What is known before there is a watch: a change that comes between is then the first one told.
    let known = LastState(try state())
    return try betweenPeers("observe \(what)", name) {
      try value.observe(startsWithCurrent: true, on: queue) { snapshot in
        let now: Result<State, PeerError>
        do {
          now = .success(try state(in: snapshot.propertyList()))
        } catch {
          now = .failure(PeerError(any: error, "read \(what)", peer: name))
        }
        if known.isNew(now) { handler(now) }
      }
    }
  }

  // MARK: The value

  private var value: Value { container.own.value(PeerNames.pairing(name)) }

  private var what: String { "what is paired with \"\(name)\"" }

  /// - Parameter pairs: whether somebody is paired by it; nobody is the default companion then.
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
      return State(companions: [Companion(name: defaultCompanion)], activeName: defaultCompanion)
    }
    guard let state = State(content) else {
      throw PeerError(
        .damaged, "read \(what)", peer: name,
        reason: "it is a property list of another shape (\(value.path))",
        remedy: "remove it: then only \"\(defaultCompanion)\" is paired")
    }
    return state
  }
}

/// What an observer knows: it is told of changes only.
private final class LastState: Sendable {
  /// Nil after an error: then whatever comes is new.
  private let state: Mutex<PeerPairing.State?>

  init(_ state: PeerPairing.State) { self.state = Mutex(state) }

  func isNew(_ result: Result<PeerPairing.State, PeerError>) -> Bool {
    state.withLock { state in
      switch result {
      case .success(let now):
        defer { state = now }
        return now != state
      case .failure:
        state = nil
        return true
      }
    }
  }
}
