import AppGroup
import PropertyLists
import SystemCalls

/// A registration as a property list, the reasons against it, and whether it can be followed.
extension PeerLaunch {
  static let limits = PropertyListLimits(maximumBytes: 1 << 20, maximumDepth: 8)

  private static let names: [(name: String, occasion: Occasions)] = [
    ("request", .request), ("queuedWork", .queuedWork), ("urgentWork", .urgentWork),
  ]

  var propertyList: PropertyListValue {
    var value: PropertyListValue = [
      "program": .string(program), "arguments": .array(arguments.map { .string($0) }),
      "environment": .dictionary(environment.mapValues { .string($0) }),
      "occasions": .array(
        Self.names.filter { occasions.contains($0.occasion) }.map { .string($0.name) }),
    ]
    value["budgetPerDay"] = budgetPerDay.map { .integer(Int64($0)) }
    return value
  }

  /// - Returns: nil for a value that is no registration. An occasion that is unknown here is passed over.
  init?(_ value: PropertyListValue) {
    guard let program = value["program"]?.stringValue else { return nil }
    self.init(program: program, occasions: [])
    for item in value["arguments"]?.arrayValue ?? [] {
      guard let argument = item.stringValue else { return nil }
      arguments.append(argument)
    }
    for (name, item) in value["environment"]?.dictionaryValue ?? [:] {
      guard let text = item.stringValue else { return nil }
      environment[name] = text
    }
    for item in value["occasions"]?.arrayValue ?? [] {
      let known = Self.names.first { $0.name == item.stringValue }
      occasions.formUnion(known?.occasion ?? [])
    }
    if let budget = value["budgetPerDay"] {
      guard let budget = budget.intValue else { return nil }
      budgetPerDay = budget
    }
    guard unsuitability == nil else { return nil }
  }

  /// Why nothing could be started by it; nil when it is well-formed.
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

  /// Why its program cannot be run, as far as can be seen before it is tried.
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

  /// Whether it wants to be started for an occasion: urgent work is queued work as well.
  func isFor(_ occasion: Occasions) -> Bool {
    let wanted = occasion.contains(.urgentWork) ? occasion.union(.queuedWork) : occasion
    return !occasions.isDisjoint(with: wanted)
  }

  static func damaged(_ action: String, _ peer: String, _ path: String) -> PeerError {
    PeerError(
      .damaged, action, peer: peer, reason: "\(path) is no registration of a program",
      remedy: "register it again")
  }

  /// The registration that is to be followed.
  ///
  /// - Returns: nil when there is none.
  /// - Throws: `PeerError.notLaunched` when others than this user could have written it. Root's is
  ///   refused, too, because a container's files belong to its owner, and a program that can write as root
  ///   needs no registration.
  static func trusted(
    of peer: String, in container: SharedContainer, _ action: String
  ) throws -> PeerLaunch? {
    let value = container.own.value(PeerNames.launch(peer))
    switch try value.privateContent(limits: limits) {
    case .absent: return nil
    case .exposed(let exposure):
      throw PeerError(
        .notLaunched, action, peer: peer,
        reason: "others could have changed how it is started: \(exposure)",
        remedy: "make sure that it is right, and register it again as its owner, mode 600")
    case .content(let content):
      guard let launch = PeerLaunch(content) else { throw damaged(action, peer, value.path) }
      return launch
    }
  }
}
