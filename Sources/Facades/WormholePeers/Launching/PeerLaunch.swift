public import Wormhole
import WormholePropertyLists
import WormholeSystem

/// How a peer wants to be started when others need it.
///
/// The program is started directly, without a shell, in its own session and in the directory "/",
/// with empty input. Its output goes into a file in the container (`Registry.output(of:)`), which
/// each start replaces; a program that prints a lot should write its own log. It should make its
/// peer active before it goes into the background, because otherwise it would count as ended.
///
/// If a process is stopped or killed while it starts the program, another may start it, too. Only
/// one can be active: in a program whose variable `WORMHOLE_LAUNCH` has the peer's name, `activate`
/// throws `replaced` at once if another process is active, and the program should end.
///
/// ```swift
/// let launch = PeerLaunch(
///   program: "/usr/local/bin/phone", arguments: ["--background"], occasions: [.request, .queuedWork])
/// try PeerLaunch.Registry(in: container).set(launch, for: "phone")
/// ```
public struct PeerLaunch: Sendable, Hashable {
  /// The occasions for which a peer is started.
  ///
  /// ```swift
  /// let launch = PeerLaunch(program: "/usr/local/bin/phone", occasions: [.request, .urgentWork])
  /// ```
  public struct Occasions: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: Int

    /// Makes a set of the bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// A request, whose caller waits.
    public static let request = Occasions(rawValue: 1)
    /// A guaranteed message, urgent or not, or a file that waits for the peer.
    public static let queuedWork = Occasions(rawValue: 2)
    /// A guaranteed message that is marked as urgent.
    public static let urgentWork = Occasions(rawValue: 4)
  }

  /// The program: an absolute path.
  public var program: String
  /// Its arguments, without the program's name.
  public var arguments: [String]
  /// Variables added to the environment of the process that starts it.
  public var environment: [String: String]
  /// The occasions for which it is started; empty for never.
  public var occasions: Occasions
  /// The maximum number of starts on one day (UTC); nil for no limit.
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

extension PeerLaunch.Occasions {
  private static let names: [(name: String, occasion: Self)] = [
    ("request", .request), ("queuedWork", .queuedWork), ("urgentWork", .urgentWork),
  ]

  var propertyList: [PropertyListValue] {
    Self.names.filter { contains($0.occasion) }.map { .string($0.name) }
  }

  /// An unknown occasion is ignored.
  init(propertyList: [PropertyListValue]) {
    self = Self.names.filter { propertyList.contains(.string($0.name)) }
      .reduce(into: []) { $0.formUnion($1.occasion) }
  }

  /// Whether a peer is started for an occasion: urgent work is queued work, too.
  func include(_ occasion: Self) -> Bool {
    let wanted = occasion.contains(.urgentWork) ? occasion.union(.queuedWork) : occasion
    return !isDisjoint(with: wanted)
  }
}

/// A registration as a property list, the reasons against it, and whether it can be followed.
extension PeerLaunch {
  static let limits = PropertyListLimits(maximumBytes: 1 << 20, maximumDepth: 8)

  var propertyList: PropertyListValue {
    var value: PropertyListValue = [
      "program": .string(program), "arguments": .array(arguments.map { .string($0) }),
      "environment": .dictionary(environment.mapValues { .string($0) }),
      "occasions": .array(occasions.propertyList),
    ]
    value["budgetPerDay"] = budgetPerDay.map { .integer(Int64($0)) }
    return value
  }

  /// - Returns: nil for a value of another form. An unknown occasion is ignored.
  init?(_ value: PropertyListValue) {
    guard let program = value["program"]?.stringValue else { return nil }
    self.init(program: program, occasions: [])
    let (list, table) = (value["arguments"]?.arrayValue, value["environment"]?.dictionaryValue)
    arguments = list?.compactMap(\.stringValue) ?? []
    environment = table?.compactMapValues(\.stringValue) ?? [:]
    guard arguments.count == list?.count ?? 0, environment.count == table?.count ?? 0 else {
      return nil
    }
    occasions = Occasions(propertyList: value["occasions"]?.arrayValue ?? [])
    if let budget = value["budgetPerDay"] {
      guard let budget = budget.intValue else { return nil }
      budgetPerDay = budget
    }
    guard unsuitability == nil else { return nil }
  }

  /// Why it cannot start any program; nil if it is well-formed.
  var unsuitability: String? {
    guard program.utf8.first == UInt8(ascii: "/") else {
      return "its program \"\(program)\" is not an absolute path"
    }
    let variables = environment.flatMap { [$0.key, $0.value] }
    guard !([program] + arguments + variables).contains(where: { $0.utf8.contains(0) }) else {
      return "a text in it has a NUL, at which a program's argument would end"
    }
    guard !environment.keys.contains(where: { $0.isEmpty || $0.utf8.contains(61) }) else {
      return "the name of a variable is empty or has a \"=\""
    }
    guard budgetPerDay ?? 0 >= 0 else { return "its budget is negative" }
    return nil
  }

  /// Why its program cannot be run, as far as this can be known without trying.
  var obstacle: String? {
    do throws(Errno) {
      let status = try fileStatus(program, followingLinks: true)
      guard status.kind == .regular else { return "its program \(program) is not a file" }
      return status.permissions & 0o111 == 0
        ? "its program \(program) is not executable (mode \(String(status.permissions, radix: 8)))"
        : nil
    } catch {
      return "its program \(program) cannot be found: \(error)"
    }
  }

  private static func read(
    _ content: PropertyListValue?, at path: String, _ action: String, _ peer: String
  ) throws(WormholeError) -> PeerLaunch? {
    guard let content else { return nil }
    if let launch = PeerLaunch(content) { return launch }
    throw WormholeError(
      .damaged, action, peer: peer, reason: "\(path) is not the registration of a program",
      remedy: "register it again")
  }

  /// The registration to follow.
  ///
  /// - Returns: nil when there is none.
  /// - Throws: `WormholeError.notLaunched` if anyone but this user could have written it. Root's is
  ///   also refused, because a container's files belong to its owner, and a program that can write
  ///   as root needs no registration.
  static func trusted(
    of peer: String, in container: SharedContainer, _ action: String
  ) throws -> PeerLaunch? {
    let value = container.onThisMachine.own.value(PeerNames.launch(peer))
    do {
      return try read(value.privateContent(limits: limits), at: value.path, action, peer)
    } catch let exposure as Exposure {
      throw WormholeError(
        .notLaunched, action, peer: peer,
        reason: "others could have changed how it is started: \(exposure)",
        remedy: "make sure that it is right, and register it again as its owner, mode 600")
    }
  }

  /// The registrations of a container: how each peer is started.
  ///
  /// ```swift
  /// let registry = PeerLaunch.Registry(in: container)
  /// print(try registry.launch(of: "phone")?.program ?? "phone is not started by anybody")
  /// print(try registry.remainingLaunches(of: "phone") ?? -1, "launches are left today")
  /// ```
  public struct Registry: Sendable {
    private let container: SharedContainer

    /// The registrations of a container; nothing is read or written before they are used.
    public init(in container: SharedContainer) { self.container = container }

    /// Registers how a peer is started; usually a program registers its own peer.
    ///
    /// The registration is followed only while no other user can change it. So a container that a
    /// Unix group shares accepts none: its members could make each other run programs. For a
    /// container on etcd it is kept in this machine's directory, and only followed on this machine;
    /// an `Agent` follows it for processes on other machines.
    ///
    /// - Throws: `WormholeError.Code.unsupportedValue` for a program without an absolute path, text
    ///   with a NUL, a variable that is empty or has a "=" in its name, or a negative budget;
    ///   `.notLaunched` where others could change it; or an error of the container.
    /// - Complexity: replaces one value.
    public func set(_ launch: PeerLaunch, for peer: String) throws {
      let action = "register how to start \"\(peer)\""
      try betweenPeers(action, peer) {
        if let reason = launch.unsuitability {
          throw WormholeError(.unsupportedValue, action, peer: peer, reason: reason)
        }
        let value = try value(of: peer)
        var isWritten = false
        do {
          // First, because a removed value leaves its name for a while.
          try value.requirePrivateContainer()
          try value.replace(with: launch.propertyList)
          isWritten = true
          _ = try value.privateContent()
        } catch let exposure as Exposure {
          if isWritten { try value.remove() }
          throw WormholeError(
            .notLaunched, action, peer: peer, reason: "others could change it: \(exposure)",
            remedy: "use a container that only this user may write to")
        }
      }
    }

    /// The names of the peers registered here, sorted.
    public func peers() throws -> [String] {
      try betweenPeers("list who is registered") {
        try Diagnostics.reportingFaults { try peers(&$0) }
      }
    }

    /// - Parameter faults: takes the registrations that cannot be looked at.
    package func peers(_ faults: inout NameFaults) throws -> [String] {
      let here = container.onThisMachine
      return try here.identifiers(of: .ownValue, &faults).compactMap { name in
        guard let peer = PeerNames.peer(ofLaunch: name) else { return nil }
        let value = here.own.value(name)
        // A name remains for a while after its registration was removed.
        let version = try faults.attempt("list who is registered", path: value.path) {
          try value.version()
        }
        return version ?? nil == nil ? nil : peer
      }.sorted()
    }

    /// How a peer is started; nil if it is not registered.
    ///
    /// - Throws: `WormholeError.Code.damaged` for a value that cannot be read as a registration, or an
    ///   error of the container.
    /// - Complexity: reads one value.
    public func launch(of peer: String) throws -> PeerLaunch? {
      let action = "read how to start \"\(peer)\""
      return try betweenPeers(action, peer) {
        let value = try value(of: peer)
        let content = try value.read(limits: PeerLaunch.limits)
        return try PeerLaunch.read(content, at: value.path, action, peer)
      }
    }

    /// Removes how a peer is started. The count of today's starts stays.
    public func remove(_ peer: String) throws {
      try betweenPeers("remove how to start \"\(peer)\"", peer) { _ = try value(of: peer).remove() }
    }

    /// How often a peer may still be started today; nil for no limit or no registration.
    ///
    /// - Complexity: reads two values.
    public func remainingLaunches(of peer: String) throws -> Int? {
      guard let budget = try launch(of: peer)?.budgetPerDay else { return nil }
      return try betweenPeers("read how often \"\(peer)\" was started", peer) {
        max(0, budget - (try LaunchBook(peer, container).read().count(at: .now())))
      }
    }

    /// The file with the output of a peer's last start; nil if it was never started.
    public func output(of peer: String) throws -> String? {
      try betweenPeers("find the output of \"\(peer)\"", peer) {
        try PeerNames.check(peer)
        let book = LaunchBook(peer, container)
        guard let path = try book.read().start.map(book.outputPath) else { return nil }
        return try reporting("look at what a program printed", path: path) {
          try ifPresent(fileStatus(path)) == nil ? nil : path
        }
      }
    }

    private func value(of peer: String) throws -> PlainValue {
      try PeerNames.check(peer)
      return container.onThisMachine.own.value(PeerNames.launch(peer))
    }
  }
}
