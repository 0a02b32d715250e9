public import FoundationEssentials
import WormholeSystem

/// One place through which any number of processes share state: a directory, or, for processes on
/// several machines, a prefix of keys on an etcd cluster.
///
/// A directory's content is property-list files: `ls`, Python's `plistlib` or a shell script can read it and
/// take part. No process can block another by being suspended or killed, no reader sees half a
/// file, and no update is lost; `OnDiskFormat` in the documentation explains how.
///
/// A directory is cheap to open (five system calls), and takes one descriptor. A container on etcd
/// is opened with one request; see "Beyond one machine" for what differs there. Thread-safe.
///
/// ```swift
/// let container = try SharedContainer(group: "group.com.example.cinema")
/// try await container.value("seats").replace(with: [7, 8])
/// print(try container.valueIdentifiers(), container.location)
/// ```
public final class SharedContainer: Sendable {
  /// The container's directory; for a container on etcd its directory on this machine, for files
  /// that other machines need not see.
  public let url: URL
  /// The container's place as text: its directory's path, or "etcds://h1:2379,h2:2379/cinema".
  public let location: String
  /// The group's identifier, if the container was opened by it.
  public let groupIdentifier: String?

  /// The engine behind values, queues, presences and notifications.
  package let engine: any ContainerEngine
  /// The directory of `url`.
  package let root: ContainerRoot

  /// Opens the container of a group, and creates it if it is missing.
  ///
  /// It is in `$XDG_DATA_HOME/app-groups/<group>`, by default `~/.local/share/app-groups/<group>`;
  /// or on etcd, if `WORMHOLE_GROUPS` is set: the group is then appended to
  /// `etcds://host1,host2/prefix`. A directory whose mode is 2770 is opened for the members of its
  /// Unix group, too (`ContainerAccess.group`).
  ///
  /// - Parameter group: An App Group identifier such as `group.com.example.cinema`; any string.
  /// - Throws: `WormholeError.Code.containerUnsafe` if its owner or mode lets others in,
  ///   `.formatTooNew`, or an error of the file system.
  public convenience init(group: String) throws { try self.init(group: group, CallLimit()) }

  /// - Parameter limit: The end of this call, and of those through the container.
  package convenience init(group: String, _ limit: CallLimit) throws {
    if let location = try Engines.location(forGroup: group) {
      try self.init(at: location, group: group, limit)
    } else {
      let path = try ContainerLocation.path(forGroup: group)
      try ContainerLocation.create(path)
      try self.init(path: path, group: group, access: nil)
    }
  }

  /// Opens any directory as a container.
  ///
  /// - Parameters:
  ///   - url: A directory of this user with mode 0700; an empty directory becomes a container.
  ///   - access: `.group` for a directory that the members of its Unix group share (mode 2770).
  /// - Throws: `WormholeError.Code.containerMissing`, `.containerUnsafe` (also for a symbolic
  ///   link), `.formatTooNew`, or an error of the file system.
  public convenience init(url: URL, access: ContainerAccess = .owner) throws {
    try self.init(path: url.path, group: nil, access: access)
  }

  package convenience init(
    path: String, group: String? = nil, access: ContainerAccess? = .owner
  ) throws {
    let path = try Self.absolute(path)
    self.init(try ContainerRoot(path: path, access: access, group: group), group)
    try establishFormat()
  }

  private init(_ root: ContainerRoot, _ group: String?) {
    self.root = root
    // Looks for a copier, and from now on once a second.
    _ = root.pause
    engine = DirectoryEngine(root: root)
    url = URL(filePath: root.path, directoryHint: .isDirectory)
    location = root.path
    groupIdentifier = group
  }

  /// Checks the version of the directory's format, and writes it if `container.plist` is missing.
  package func establishFormat() throws {
    try ContainerFormat.establish(in: root, group: groupIdentifier)
  }

  /// Opens a directory or a container on etcd.
  ///
  /// - Parameter location: A directory's path, or a text such as `etcds://host1,host2/cinema` in a
  ///   program that has called `EtcdEngine.register()`. A directory whose mode is 2770 is opened for the
  ///   members of its Unix group, too (`ContainerAccess.group`).
  /// - Throws: As the other initializers; `notSupported` if this program has no engine for the location.
  @available(*, noasync, message: "it blocks; open it before, or on a thread of its own")
  public convenience init(location: String) throws {
    try self.init(location: location, CallLimit())
  }

  /// - Parameter limit: The end of this call, and of those through the container.
  package convenience init(location: String, _ limit: CallLimit) throws {
    if let location = try Engines.location(location) {
      try self.init(at: location, limit)
    } else {
      try self.init(path: location, access: nil)
    }
  }

  /// - Parameter companion: The directory of this machine; nil for the usual place.
  package convenience init(
    at location: any EngineLocation, group: String? = nil, companion: String? = nil,
    _ limit: CallLimit = CallLimit()
  ) throws {
    guard let engine = try location.open(creates: true, ofGroup: group != nil, limit) else {
      preconditionFailure("one that is missing is made")
    }
    try self.init(engine, at: location, group: group, companion: companion)
  }

  /// A container of an engine that has opened it.
  package init(
    _ engine: any ContainerEngine, at place: any EngineLocation, group: String? = nil,
    companion: String? = nil
  ) throws {
    self.engine = engine
    let companion = try companion ?? engine.localDirectory()
    try ContainerLocation.create(companion)
    root = try ContainerRoot(path: companion, access: .owner)
    _ = root.pause
    url = URL(filePath: companion, directoryHint: .isDirectory)
    location = place.description
    groupIdentifier = group
    try ContainerFormat.establish(in: root, group: group)
  }

  private init(
    _ other: SharedContainer, on engine: any ContainerEngine, at location: String? = nil
  ) {
    self.engine = engine
    root = other.root
    url = other.url
    self.location = location ?? other.location
    groupIdentifier = other.groupIdentifier
  }

  /// Returns this container for a caller with a deadline. Calls through it that have no deadline of
  /// their own end then; one that begins later has a second. Watches and registrations that begin
  /// through it go on.
  package func limited(until deadline: ContinuousClock.Instant?) -> SharedContainer {
    engine.limited(CallLimit(deadline)).map { SharedContainer(self, on: $0) } ?? self
  }

  /// Opens an existing container, and never creates one.
  ///
  /// - Parameter limit: The end of this call, and of those through the container.
  /// - Returns: nil for a directory that could become a container but is not one yet, and for a prefix
  ///   without one.
  /// - Throws: As `init(location:)`.
  package static func existing(
    location: String, _ limit: CallLimit = CallLimit()
  ) throws -> SharedContainer? {
    guard let place = try Engines.location(location) else { return try existing(path: location) }
    return try existing(at: place, limit)
  }

  /// Opens the existing container of a group, and never creates one.
  ///
  /// - Throws: As `init(group:)`.
  package static func existing(
    group: String, _ limit: CallLimit = CallLimit()
  ) throws -> SharedContainer? {
    if let location = try Engines.location(forGroup: group) {
      return try existing(at: location, group: group, limit)
    }
    do {
      return try existing(path: ContainerLocation.path(forGroup: group), group: group)
    } catch let error as WormholeError where error.code == .containerMissing {
      return nil
    }
  }

  private static func existing(
    at location: any EngineLocation, group: String? = nil, _ limit: CallLimit
  ) throws -> SharedContainer? {
    try location.open(creates: false, ofGroup: group != nil, limit).map {
      try SharedContainer($0, at: location, group: group)
    }
  }

  private static func existing(path: String, group: String? = nil) throws -> SharedContainer? {
    let root = try ContainerRoot(path: absolute(path), access: nil, group: group)
    return try ContainerFormat.isFound(in: root) ? SharedContainer(root, group) : nil
  }

  /// Returns the place of a group's container, whether or not it exists.
  package static func location(ofGroup group: String) throws -> String {
    try Engines.location(forGroup: group)?.description
      ?? ContainerLocation.path(forGroup: group)
  }

  // Resolved once, because the program may change its directory later.
  package static func absolute(_ path: String) throws -> String {
    let path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    guard !path.hasPrefix("/") else { return path }
    let current = try reporting("find the current directory", path: ".") {
      try linkTarget("/proc/self/cwd")
    }
    return path == "." ? current : current + "/" + path
  }

  /// Returns the identifiers of a kind, without the entries that cannot be names.
  package func identifiers(of kind: NameKind) throws -> [String] {
    var unreported = NameFaults()
    return try reporting("list the container", path: location) {
      try engine.identifiers(of: kind, &unreported)
    }
  }
}

extension SharedContainer {
  /// Returns the engine as that of a primitive, which each engine is.
  package func engine<Engine>(as _: Engine.Type) -> Engine {
    // What a directory is, the compiler knows: a look at the conformances would cost more than the rest.
    let found = (engine as? DirectoryEngine).map { $0 as? Engine } ?? engine as? Engine
    guard let found else { preconditionFailure("each engine is an \(Engine.self)") }
    return found
  }

  /// Its name in events: its path.
  package var place: String { root.path }

  /// Whether only processes on this machine share it, unless it is on a network file system.
  package var isLocal: Bool { engine.host == nil }

  /// Makes a change; if the directory of a group was removed, it is made again first. For callers that look
  /// before they write, which each primitive does by itself.
  package func changing<Result>(_ body: () throws -> Result) throws -> Result {
    try root.changing(body)
  }

  /// Whether everything that this process published without durability is on the disk.
  package var hasFollowedUp: Bool { root.followUps.isDone }

  /// Flushes everything that this process published without durability in the last second, for a
  /// program that is about to end.
  ///
  /// Does nothing on a file system that flushes by itself within five seconds (ext4).
  ///
  /// - Complexity: As the follow-up itself: two fsyncs for each value.
  package static func followUpBeforeExit() { FollowUps.finishAll() }

  /// The container in this machine's directory, for data that belongs to processes of this machine.
  package var onThisMachine: SharedContainer {
    SharedContainer(self, on: DirectoryEngine(root: root), at: root.path)
  }

  /// Refuses an operation that only a directory supports.
  ///
  /// - Throws: `WormholeError.notSupported` for a container on etcd.
  package func requireDirectory(_ action: String, remedy: String) throws {
    guard !isLocal else { return }
    throw WormholeError(
      .notSupported, action, path: location, reason: "that needs a directory, and it is on etcd",
      remedy: remedy)
  }
}
