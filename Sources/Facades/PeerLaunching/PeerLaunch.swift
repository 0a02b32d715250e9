/// How a peer wants to be started when others need it.
///
/// The program is started as it is, without a shell, in a session of its own and in the directory "/",
/// with nothing to read. Its output goes into a file in the container (`Registry.output(of:)`), which each
/// start replaces; a program that prints much should write a log of its own. Its environment has
/// `WORMHOLE_LAUNCH` set. It should make its peer active without going into the background before,
/// because then it would count as ended.
public struct PeerLaunch: Sendable, Hashable {
  /// The occasions for which a peer is started.
  public struct Occasions: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: Int

    /// Makes a set of the bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// A request, whose caller waits.
    public static let request = Occasions(rawValue: 1)
    /// A guaranteed message, urgent or not, or a file that waits for it.
    public static let queuedWork = Occasions(rawValue: 2)
    /// A guaranteed message that is marked as urgent.
    public static let urgentWork = Occasions(rawValue: 4)
  }

  /// The program: an absolute path.
  public var program: String
  /// Its arguments, without the program's name.
  public var arguments: [String]
  /// Variables that are added to the environment of the process that starts it.
  public var environment: [String: String]
  /// The occasions for which it is started; empty for never.
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
