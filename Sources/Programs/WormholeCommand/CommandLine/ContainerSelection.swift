import Wormhole
import WormholeSystem
import WormholeTerminals

struct ContainerSelection: Sendable {
  enum Name: Sendable, Equatable {
    case group(String)
    case directory(String)

    /// The container that the options, or without them the variables, name; nil if there is none.
    static func chosen(
      option: (String) -> String?, variable: (String) -> String?
    ) throws(Misuse) -> Name? {
      let variables = [groupVariable, directoryVariable]
      let given = ["group", "container"].map(option)
      if given == [nil, nil],
        let odd = variables.first(where: { variable($0)?.isRepaired ?? false })
      {
        throw Misuse("the variable \(odd) is not valid UTF-8")
      }
      // An empty variable counts as unset.
      var set = variables.map { name in variable(name).flatMap { $0.isEmpty ? nil : $0 } }
      // A command of this program that sets the other one means that.
      if set.allSatisfy({ $0 != nil }), let inherited = variable(inheritedVariable) {
        set = zip(variables, set).map { $0 == inherited ? nil : $1 }
      }
      for (names, conflict) in [
        (given, "--group and --container exclude each other: each names a container"),
        (
          set,
          variables.joined(separator: " and ")
            + " are both set: unset one, or give --group or --container"
        ),
      ] {
        if names[0] != nil, names[1] != nil { throw Misuse(conflict) }
        if let group = names[0] { return .group(group) }
        if let directory = names[1] { return .directory(directory) }
      }
      return nil
    }
  }

  let name: Name
  /// The end of its opening, and of the calls through it that have no deadline.
  var limit = CallLimit()

  init(_ name: Name) { self.name = name }

  static let groupVariable = "WORMHOLE_GROUP"
  static let directoryVariable = "WORMHOLE_CONTAINER"
  /// The one of these two that this program has set for a command.
  static let inheritedVariable = "WORMHOLE_INHERITED"

  static let options: [ArgumentDescription] = [
    .value(
      "group", .live(.group), named: "id",
      help: "The container of this group, such as group.com.example.cinema. The first use makes "
        + "it. \(groupVariable) in the environment has the same effect."),
    .value(
      "container", .directory,
      help: "The container in this directory, which must exist, or on etcd: "
        + "etcds://HOST,HOST/PREFIX. The first use makes it, also by a command that listens. "
        + "\(directoryVariable) in the environment has the same effect."),
  ]

  /// The options that name this container again, quoted for a shell.
  var shellOptions: String {
    switch name {
    case .group(let group): "--group \(group.quotedForShell)"
    case .directory(let directory): "--container \(directory.quotedForShell)"
    }
  }

  /// The environment in which another program finds this container; an empty variable counts as
  /// unset.
  func variables(to verb: String) throws -> [String: String] {
    switch name {
    case .group(let group):
      [
        Self.groupVariable: group, Self.directoryVariable: "",
        Self.inheritedVariable: Self.groupVariable,
      ]
    case .directory(let directory):
      [
        Self.directoryVariable: Engines.isMeant(by: directory)
          ? directory : try CommandLinePath.absolute(directory, to: verb),
        Self.groupVariable: "", Self.inheritedVariable: Self.directoryVariable,
      ]
    }
  }

  /// The path of the container, even if it does not exist yet.
  func path() throws -> String { Engines.withoutPassword(try place().location) }

  /// The place for a container that does not exist yet, and its group, if it has one.
  func place() throws -> (location: String, group: String?) {
    switch name {
    case .group(let group): (try SharedContainer.location(ofGroup: group), group)
    case .directory(let directory): (directory, nil)
    }
  }

  /// Opens the container; makes a group's container if it is missing. Throws `WormholeError` with its
  /// remedy.
  func open(_ first: Prefetch? = nil) throws -> SharedContainer {
    var limit = limit
    limit.first = first
    switch name {
    case .group(let group): return try SharedContainer(group: group, limit)
    case .directory(let directory): return try SharedContainer(location: directory, limit)
    }
  }

  /// Opens the container without making anything; nil for a directory that is not a container yet.
  /// Throws `WormholeError` with its remedy; `CommandError` for a group that has no container.
  func openExisting() throws -> SharedContainer? {
    if let container = try existing() { return container }
    guard case .group(let group) = name else { return nil }
    let hint = try hint()
    throw CommandError.no(
      "open the container of group \(group.quoted) (\(try path()))",
      because: "there is none yet; "
        + (hint.isEmpty ? "the first value makes it" : hint.dropLast()))
  }

  /// Opens the container for a command that needs one.
  func openExisting(to verb: String) throws -> SharedContainer {
    // Without a suggestion: the intended one may be about to be removed.
    if let container = try existing() { return container }
    throw CommandError.no("\(verb) \(try path())", because: "there is no container")
  }

  /// Opens the container without an error for a group; nil if there is no container.
  func existing() throws -> SharedContainer? {
    switch name {
    case .group(let group): try SharedContainer.existing(group: group, limit)
    case .directory(let directory): try SharedContainer.existing(location: directory, limit)
    }
  }

  /// Opens the container for a listener.
  ///
  /// If a group has none, the listener reports that and waits until another process makes it:
  /// programs start in any order, and a listener whose identifier has a typo makes nothing.
  ///
  /// - Parameter makesContainer: whether a directory becomes a container if it is not one yet.
  /// - Returns: the container, and whether another process made it during the wait: then everything
  ///   in it is new, and "listening" has been printed.
  /// - Throws: `ExitStatus.deadline` when the deadline has passed.
  func openToListen(
    until deadline: ContinuousClock.Instant, _ environment: CommandEnvironment,
    makesContainer: Bool = true
  ) throws -> (container: SharedContainer, isNew: Bool) {
    if case .directory = name, makesContainer { return (try open(), false) }
    if let container = try existing() { return (container, false) }
    environment.reportListening()
    let subject = if case .group(let group) = name { "group \(group.quoted)" } else { try path() }
    environment.report("\(subject) has no container yet; \(try hint())waiting for its first use")
    // At once, because what the first user removes again is never seen.
    let latch = WakeLatch()
    let watch = try watchLocation { latch.raise() }
    defer { watch?.cancel() }
    while true {
      if let container = try existing() { return (container, true) }
      guard ContinuousClock.now < deadline else { throw ExitStatus.deadline }
      latch.block(until: min(.now + ChangeMonitor.pollInterval, deadline))
    }
  }

  /// Watches the container's directory, which need not exist; nil if it is not in a directory.
  private func watchLocation(_ hear: @escaping @Sendable () -> Void) throws -> Watch? {
    let location = try place().location
    guard !Engines.isMeant(by: location) else { return nil }
    let path = try SharedContainer.absolute(location)
    return ChangeMonitor.shared.watch(
      path: path, parents: [], way: path, readsNames: false, prepare: {},
      hear: { _ in hear() })
  }

  /// `did you mean 'group.example'? `, one of the existing groups; empty if none is near.
  func hint() throws -> String {
    guard case .group(let group) = name else { return "" }
    return Suggestion.sentence(for: group, among: try ContainerLocation.groups().map(\.identifier))
  }
}
