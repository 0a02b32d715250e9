public import FoundationEssentials
public import Wormhole

/// The state of a container at one moment: its content, the holders of its leases, and every
/// irregularity.
///
/// The inspection changes nothing. Other processes continue meanwhile, so two parts of a report may
/// show different instants. `wormhole status --json` prints the encoding of a report, with durations in
/// the unit that their key names, and the lists of `names` at the top.
///
/// ```swift
/// let report = try container.report()
/// for value in report.names.values { print(value.identifier, value.bytes ?? 0) }
/// for queue in report.names.queues { print(queue.name, queue.waiting, "waiting") }
/// for file in report.quarantine { print("unreadable, put aside:", file.path) }
/// ```
public struct ContainerReport: Sendable, Encodable {
  /// The container's directory.
  public let path: String
  /// The container's group, if its `container.plist` names one.
  public package(set) var groupIdentifier: String?
  /// The version of the on-disk format.
  public package(set) var formatVersion: Int64?
  /// The time of the container's creation.
  public package(set) var created: Date?
  /// The kind of network file system that the container is on; nil for a local one.
  public package(set) var networkFileSystem: String?

  /// The names that the container's users chose.
  public package(set) var names = Names()
  /// The package's own data, for example defaults, and the information of peers about each other.
  public package(set) var own = Names()
  /// The leases that processes hold.
  public package(set) var leases: [HeldLease] = []
  /// The leftovers of dead processes and of processes whose lease was taken over;
  /// `SharedContainer.sweep` removes them.
  public package(set) var leftovers: [Leftover] = []
  /// The content that was put aside because it could not be read.
  public package(set) var quarantine: [QuarantinedFile] = []
  /// Foreign entries in our directories or among our keys. The group's own files beside these
  /// directories do not count.
  public package(set) var foreignEntries: [ForeignEntry] = []
  /// Entries that users outside the container could change, because of their owner or mode.
  public package(set) var looseEntries: [LooseEntry] = []
  /// The user's use of the kernel's watches.
  public package(set) var watches = WatchUse()
  /// The cluster of a container on etcd; nil for a directory.
  public package(set) var cluster: ClusterReport?
  /// The parts that could not be examined, with the reasons.
  public package(set) var failures: [WormholeError] = []
  /// Whether the report covers only a part, because there was more than it examines.
  public package(set) var isPartial = false

  private enum CodingKeys: String, CodingKey {
    case formatVersion, created, networkFileSystem, names, own, leases, leftovers, quarantine
    case foreignEntries, looseEntries, watches, cluster, failures, isPartial
    case path = "container"
    case groupIdentifier = "group"
  }

  package init(path: String) { self.path = path }

  package mutating func change(_ kind: NameKind, _ body: (inout Names) -> Void) {
    if kind.isOwn { body(&own) } else { body(&names) }
  }
}

extension ContainerReport {
  /// A lease that is being held.
  ///
  /// ```swift
  /// for lease in try container.report().leases { print(lease.identifier, "is held by", lease.holder) }
  /// ```
  public struct HeldLease: Sendable, Encodable {
    /// Why other processes may take over a lease.
    ///
    /// ```swift
    /// for lease in try container.report().leases {
    ///   if let overdue = lease.overdue { print(lease.identifier, overdue.rawValue) }
    /// }
    /// ```
    public enum Overdue: String, Sendable, Encodable {
      /// Its holder is stopped.
      case stopped
      /// The holder has kept it longer than it declared.
      case termPassed
    }

    /// The identifier of the value or notification.
    public let identifier: String
    /// The use of one of the package's own names; nil for a user's.
    public let title: String?
    /// Whether the name is one of the package's own.
    public let isOwn: Bool
    /// The file that only the holder may change.
    public let path: String
    /// The holder.
    public let holder: LeaseHolder
    /// The term that the holder declared; nil if it has declared none, or keeps the lease as long as
    /// it runs.
    public let term: Duration?
    /// Why other processes may take it over; nil if they may not. They do so when they need it, so
    /// it blocks no process.
    public let overdue: Overdue?

    private enum CodingKeys: String, CodingKey {
      case identifier, title, isOwn, path, overdue
      case term = "termSeconds"
    }

    /// Encodes the lease with its holder.
    public func encode(to encoder: any Encoder) throws {
      try holder.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(identifier, forKey: .identifier)
      try container.encodeIfPresent(title, forKey: .title)
      try container.encode(isOwn, forKey: .isOwn)
      try container.encode(path, forKey: .path)
      try container.encodeIfPresent(term, forKey: .term)
      try container.encodeIfPresent(overdue, forKey: .overdue)
    }
  }

  /// An entry that no process needs.
  ///
  /// ```swift
  /// print(try container.report().leftovers.map(\.path))
  /// ```
  public struct Leftover: Sendable, Encodable {
    /// The origin of a leftover.
    ///
    /// ```swift
    /// print(try container.report().leftovers.map(\.kind.rawValue))
    /// ```
    public enum Kind: String, Sendable, Encodable {
      /// A lease that was taken over but not completely removed.
      case brokenLease
      /// An unpublished change of a process that died.
      case abandonedChange
      /// Large or durable content whose writer died before it was published.
      case abandonedContent
      /// A directory or `container.plist` whose creator died before it got its name.
      case abandonedCreation
      /// The registration of a process that died, perhaps before it had entered.
      case abandonedPresence
      /// An entry that a sender or consumer had not stored or not removed when it died.
      case abandonedEntry
      /// The mailbox of a process that died.
      case abandonedMailbox
    }

    /// The origin of the leftover.
    public let kind: Kind
    /// Its path.
    public let path: String
    /// The value whose lease must be held to remove it.
    let owner: ContainerInspection.Owner?

    private enum CodingKeys: CodingKey { case kind, path }
  }

  /// A file that was put aside.
  ///
  /// ```swift
  /// for file in try container.report().quarantine { print(file.path, file.bytes, file.modified) }
  /// ```
  public struct QuarantinedFile: Sendable, Encodable {
    /// Its path.
    public let path: String
    /// Its size.
    public let bytes: Int64
    /// The time of its publication.
    public let modified: Date
  }

  /// An entry that does not belong to the container.
  ///
  /// ```swift
  /// for entry in try container.report().foreignEntries where entry.isInTheWay { print(entry.path) }
  /// ```
  public struct ForeignEntry: Sendable, Encodable {
    /// Its path, or its key on etcd.
    public let path: String
    /// Whether it prevents a value from being written.
    public let isInTheWay: Bool

    package init(path: String, isInTheWay: Bool) {
      self.path = path
      self.isInTheWay = isInTheWay
    }

    /// Encodes the path.
    public func encode(to encoder: any Encoder) throws { try path.encode(to: encoder) }
  }

  /// An entry that another user owns or could change.
  ///
  /// ```swift
  /// for entry in try container.report().looseEntries { print(entry.path, "of user", entry.owner) }
  /// ```
  public struct LooseEntry: Sendable, Encodable {
    /// Its path.
    public let path: String
    /// The owner's number.
    public let owner: UInt32
    /// The permission bits in octal, as chmod takes them.
    public let mode: String
    /// Whether it belongs to another user than the container.
    public let isForeign: Bool
  }

  /// The part of the kernel's limits for watching files that the user has used up.
  ///
  /// ```swift
  /// let use = try container.report().watches
  /// print(use.watches, "of", use.maximumWatches ?? 0, "watches are used")
  /// ```
  public struct WatchUse: Sendable, Encodable {
    /// `fs.inotify.max_user_watches`.
    public package(set) var maximumWatches: Int?
    /// `fs.inotify.max_user_instances`.
    public package(set) var maximumInstances: Int?
    /// The number of watches of all visible processes of the user.
    public package(set) var watches = 0
    /// The number of instances of all visible processes of the user.
    public package(set) var instances = 0
    /// Why a new listener would get no watch; nil if it would get one.
    public package(set) var refusal: WormholeError?
  }
}
