public import FoundationEssentials
public import Wormhole

/// The state of a container at one moment: its content, the holders of its leases, and every
/// irregularity.
///
/// The inspection changes nothing. Other processes continue meanwhile, so two parts of a report may
/// show different instants.
///
/// ```swift
/// let report = try container.report()
/// for value in report.names.values { print(value.identifier, value.bytes ?? 0) }
/// for queue in report.names.queues { print(queue.name, queue.waiting, "waiting") }
/// for file in report.quarantine { print("unreadable, put aside:", file.path) }
/// ```
public struct ContainerReport: Sendable {
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

  package init(path: String) { self.path = path }

  package mutating func change(_ kind: NameKind, _ body: (inout Names) -> Void) {
    if kind.isOwn { body(&own) } else { body(&names) }
  }
}

extension ContainerReport {
  /// All names of one origin, sorted.
  ///
  /// ```swift
  /// let names = try container.report().names
  /// print(names.values.count, "values,", names.queues.count, "queues,", names.logs.count, "logs")
  /// ```
  public struct Names: Sendable {
    /// The values by identifier, even those that were observed but never written.
    public package(set) var values: [NamedContent] = []
    /// The notifications by name.
    public package(set) var notifications: [NamedContent] = []
    /// The presences by name, even those that were only observed.
    public package(set) var presences: [NamedPresence] = []
    /// The queues by name.
    public package(set) var queues: [NamedQueue] = []
    /// The logs by name.
    public package(set) var logs: [NamedLog] = []

    package init() {}

    package mutating func sort() {
      values.sort { $0.identifier.utf8.lexicographicallyPrecedes($1.identifier.utf8) }
      notifications.sort { $0.identifier.utf8.lexicographicallyPrecedes($1.identifier.utf8) }
      presences.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      queues.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      logs.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }
  }

  /// A value, or the state of a notification.
  ///
  /// ```swift
  /// for value in try container.report().names.values { print(value.identifier, value.bytes ?? 0) }
  /// ```
  public struct NamedContent: Sendable {
    /// The state of the content.
    ///
    /// ```swift
    /// for value in try container.report().names.values {
    ///   if case .absent = value.condition { print(value.identifier, "was cleared") }
    /// }
    /// ```
    public enum Condition: Sendable {
      /// Never written, removed, or expired.
      case absent
      /// It was read.
      case readable
      /// Reading it fails for every process.
      case unreadable(WormholeError)
      /// The report had used up its time or its bytes.
      case notRead
    }

    /// The identifier, or the notification's name.
    public let identifier: String
    /// The file.
    public let path: String
    /// The file's size, if there is a file.
    public package(set) var bytes: Int64?
    /// The time of its publication.
    public package(set) var modified: Date?
    /// The process that published the content; nil if the record does not name it.
    public package(set) var publisher: Publisher?
    /// The moment from which it counts as never written; nil if it does not expire.
    public package(set) var expiration: Date?
    /// Whether it can be read.
    public package(set) var condition: Condition = .absent
    /// When an older version was published that the container kept in case the last one is lost.
    /// Readers get it, if the content is readable; otherwise `Value.quarantine` makes it the value.
    public package(set) var kept: Date?
    /// The 64-bit state; notifications only.
    public package(set) var state: UInt64?

    package init(identifier: String, path: String) {
      self.identifier = identifier
      self.path = path
    }
  }

  /// The processes that are present under a name.
  ///
  /// ```swift
  /// for presence in try container.report().names.presences {
  ///   print(presence.name, presence.members.map(\.program))
  /// }
  /// ```
  public struct NamedPresence: Sendable {
    /// The name.
    public let name: String
    /// Its directory.
    public let path: String
    /// The present processes, running or suspended, the oldest first.
    public let members: [PresenceMember]

    package init(name: String, path: String, members: [PresenceMember]) {
      self.name = name
      self.path = path
      self.members = members
    }
  }

  /// A queue with its waiting entries and its consumer.
  ///
  /// ```swift
  /// for queue in try container.report().names.queues where queue.failed > 0 {
  ///   print(queue.name, queue.failures.map(\.reason))
  /// }
  /// ```
  public struct NamedQueue: Sendable {
    /// The name.
    public let name: String
    /// Its directory.
    public let path: String
    /// The number of waiting entries, including those in files taken by a consumer that has ended.
    public package(set) var waiting = 0
    /// The number of waiting entries that are delayed and not due yet.
    public package(set) var delayed = 0
    /// The due time of the first of them; nil if there is none.
    public package(set) var nextDue: Date?
    /// The number of bytes in the files of the waiting entries.
    public package(set) var waitingBytes: Int64 = 0
    /// The sending time of the oldest waiting entry that is due, or the time since which it is due
    /// if it was delayed; nil if none waits.
    public package(set) var oldest: Date?
    /// The number of entries in the files that a consumer has taken, including settled ones.
    public package(set) var taken = 0
    /// The consumer that has the queue alone; nil if there is none.
    public package(set) var consumer: PresenceMember?
    /// The workers that share it, the oldest first.
    public package(set) var workers: [PresenceMember] = []
    /// The number of outcomes that their senders have not cleared.
    public package(set) var outcomes = 0
    /// The number of failed entries that were kept.
    public package(set) var failed = 0
    /// The first failures, at most a hundred.
    public package(set) var failures: [QueueFailure] = []
    /// The number of entries in the files that senders keep as receipts.
    public package(set) var receipts = 0

    package init(name: String, path: String) {
      self.name = name
      self.path = path
    }
  }

  /// A log with its messages and its named subscribers.
  ///
  /// ```swift
  /// for log in try container.report().names.logs { print(log.name, log.messages, log.last ?? 0) }
  /// ```
  public struct NamedLog: Sendable {
    /// A named subscriber.
    ///
    /// ```swift
    /// for reading in try container.report().names.logs.flatMap(\.subscribers) {
    ///   print(reading.subscriber.name, reading.process?.program ?? "nobody reads for it")
    /// }
    /// ```
    public struct Reading: Sendable {
      /// Its name and position.
      public let subscriber: LogSubscriber
      /// The process that reads for it; nil if none does.
      public let process: PresenceMember?
    }

    /// The name.
    public let name: String
    /// Its directory, or its key.
    public let path: String
    /// The number of messages.
    public package(set) var messages = 0
    /// The size of their files in bytes; on etcd as of the last time that messages were taken away.
    public package(set) var bytes: Int64 = 0
    /// The number of the oldest message.
    public package(set) var first: Int?
    /// The number of the newest message.
    public package(set) var last: Int?
    /// The time of appending of the newest message.
    public package(set) var newest: Date?
    /// The bounds.
    public package(set) var bounds = LogBounds.standard
    /// The named subscribers, sorted.
    public package(set) var subscribers: [Reading] = []
    /// Why no message can be appended; nil if the log's file can be read.
    public package(set) var fault: WormholeError?

    package init(name: String, path: String) {
      self.name = name
      self.path = path
    }
  }

  /// A lease that is being held.
  ///
  /// ```swift
  /// for lease in try container.report().leases { print(lease.identifier, "is held by", lease.holder) }
  /// ```
  public struct HeldLease: Sendable {
    /// Why other processes may take over a lease.
    ///
    /// ```swift
    /// for lease in try container.report().leases {
    ///   if let overdue = lease.overdue { print(lease.identifier, overdue.rawValue) }
    /// }
    /// ```
    public enum Overdue: String, Sendable {
      /// Its holder is stopped.
      case stopped
      /// The holder has kept it longer than it declared.
      case termPassed
    }

    /// The identifier of the value or notification.
    public let identifier: String
    package let kind: NameKind
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
  }

  /// An entry that no process needs.
  ///
  /// ```swift
  /// print(try container.report().leftovers.map(\.path))
  /// ```
  public struct Leftover: Sendable {
    /// The origin of a leftover.
    ///
    /// ```swift
    /// print(try container.report().leftovers.map(\.kind.rawValue))
    /// ```
    public enum Kind: String, Sendable {
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
  }

  /// A file that was put aside.
  ///
  /// ```swift
  /// for file in try container.report().quarantine { print(file.path, file.bytes, file.modified) }
  /// ```
  public struct QuarantinedFile: Sendable {
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
  public struct ForeignEntry: Sendable {
    /// Its path, or its key on etcd.
    public let path: String
    /// Whether it prevents a value from being written.
    public let isInTheWay: Bool

    package init(path: String, isInTheWay: Bool) {
      self.path = path
      self.isInTheWay = isInTheWay
    }
  }

  /// An entry that another user owns or could change.
  ///
  /// ```swift
  /// for entry in try container.report().looseEntries { print(entry.path, "of user", entry.owner) }
  /// ```
  public struct LooseEntry: Sendable {
    /// Its path.
    public let path: String
    /// The owner's number.
    public let owner: UInt32
    /// The permission bits.
    public let permissions: UInt32
    /// Whether it belongs to another user than the container.
    public let isForeign: Bool
  }

  /// The part of the kernel's limits for watching files that the user has used up.
  ///
  /// ```swift
  /// let use = try container.report().watches
  /// print(use.watches, "of", use.maximumWatches ?? 0, "watches are used")
  /// ```
  public struct WatchUse: Sendable {
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
