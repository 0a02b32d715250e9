public import AppGroup
public import Dispatch

/// Which companions a peer has, and which of them is the active one; a watch and its phone, say.
///
/// In a container in which nobody ever paired anything, a peer has one companion of the default name,
/// paired, installed and active.
public struct PeerPairing: Sendable {
  /// What is known of a companion.
  public struct Companion: Sendable, Hashable {
    /// Its peer's name.
    public var name: String
    /// Whether its app is there.
    public var isAppInstalled: Bool
    /// Whether its complication is on display.
    public var isComplicationEnabled: Bool

    /// Makes a companion.
    public init(name: String, isAppInstalled: Bool = true, isComplicationEnabled: Bool = true) {
      self.name = name
      self.isAppInstalled = isAppInstalled
      self.isComplicationEnabled = isComplicationEnabled
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
  public func state() throws -> State { preconditionFailure("unbuilt") }

  /// Pairs a companion, or changes what is known of one that is; it becomes the active one if there was
  /// none.
  public func pair(_ companion: Companion) throws { preconditionFailure("unbuilt") }

  /// Ends the pairing with a companion; if it was the active one, the one that was paired last is.
  ///
  /// - Returns: whether it was paired.
  @discardableResult
  public func unpair(_ name: String) throws -> Bool { preconditionFailure("unbuilt") }

  /// Makes a paired companion the active one.
  ///
  /// - Returns: whether it is paired.
  @discardableResult
  public func activate(_ name: String) throws -> Bool { preconditionFailure("unbuilt") }

  /// Calls a handler with what is paired, whenever that has changed.
  public func observe(
    on queue: DispatchQueue, _ handler: @escaping @Sendable (Result<State, AppGroupError>) -> Void
  ) throws -> Observation { preconditionFailure("unbuilt") }
}
