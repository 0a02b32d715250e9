public import AppGroup

/// How a peer wants to be started when others need it.
public struct PeerLaunch: Sendable, Hashable {
  /// For what a peer is started.
  public struct Occasions: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: Int

    /// Makes a set of the bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// A request that somebody waits for.
    public static let request = Occasions(rawValue: 1)
    /// A guaranteed message or a file that waits for it.
    public static let queuedWork = Occasions(rawValue: 2)
    /// A guaranteed message that is marked as urgent.
    public static let urgentWork = Occasions(rawValue: 4)
  }

  /// The program: an absolute path.
  public var program: String
  /// Its arguments, without the program's name.
  public var arguments: [String]
  /// What is added to the environment of whoever starts it.
  public var environment: [String: String]
  /// For what it is started; empty for never.
  public var occasions: Occasions
  /// How often on one day (UTC) at most; nil for no limit.
  public var budgetPerDay: Int?

  /// Makes a registration.
  public init(
    program: String, arguments: [String] = [], environment: [String: String] = [:],
    occasions: Occasions = .request, budgetPerDay: Int? = nil
  ) {
    self.program = program
    self.arguments = arguments
    self.environment = environment
    self.occasions = occasions
    self.budgetPerDay = budgetPerDay
  }
}

extension PeerSession {
  /// Registers how a peer is started; its own peer as a rule.
  public static func setLaunch(
    _ launch: PeerLaunch, of peer: String, in container: SharedContainer
  ) throws { preconditionFailure("unbuilt") }

  /// How a peer is started; nil if nobody has registered it.
  public static func launch(of peer: String, in container: SharedContainer) throws -> PeerLaunch? {
    preconditionFailure("unbuilt")
  }

  /// Removes how a peer is started.
  public static func removeLaunch(of peer: String, in container: SharedContainer) throws {
    preconditionFailure("unbuilt")
  }

  /// How often a peer may still be started today; nil for no limit or no registration.
  public static func remainingLaunches(
    of peer: String, in container: SharedContainer
  ) throws -> Int? { preconditionFailure("unbuilt") }
}
