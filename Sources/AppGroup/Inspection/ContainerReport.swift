public import FoundationEssentials

/// What is in a container at one moment: its content, who holds what, and all that is not as it
/// should be.
///
/// Everything in it was only looked at; nothing was changed. Other processes go on meanwhile, so
/// two parts of a report need not be of the same instant.
public struct ContainerReport: Sendable {
  /// The container's directory.
  public let path: String
  /// The group that the container was made for, if its `container.plist` names one.
  public internal(set) var groupIdentifier: String?
  /// The version of the on-disk format.
  public internal(set) var formatVersion: Int64?
  /// When the container was made.
  public internal(set) var created: Date?
  /// The kind of network file system that the container is on; nil for a local one.
  public internal(set) var networkFileSystem: String?

  /// What the container's users have named.
  public internal(set) var names = Names()
  /// What the package itself keeps, under names of its own: defaults, for example, and what peers are
  /// to know of each other.
  public internal(set) var own = Names()
  /// The leases that processes hold.
  public internal(set) var leases: [HeldLease] = []
  /// What dead or overtaken processes left behind; `SharedContainer.sweep` removes it.
  public internal(set) var leftovers: [Leftover] = []
  /// What was put aside because it could not be read.
  public internal(set) var quarantine: [QuarantinedFile] = []
  /// Entries of our directories that nobody of ours makes, by their path. The group's own files beside
  /// them are none.
  public internal(set) var foreignEntries: [ForeignEntry] = []
  /// Entries with an owner or mode by which others than the container's users could change them.
  public internal(set) var looseEntries: [LooseEntry] = []
  /// The user's use of the kernel's watches.
  public internal(set) var watches = WatchUse()
  /// What could not be looked at, and why.
  public internal(set) var failures: [AppGroupError] = []
  /// Whether there was more than a report looks at; it then covers only a part.
  public internal(set) var isPartial = false
}

extension ContainerReport {
  /// All that lies under names of one kind of giver, sorted by name.
  public struct Names: Sendable {
    /// The values by identifier, also those that were only observed and never written.
    public internal(set) var values: [NamedContent] = []
    /// The notifications by name.
    public internal(set) var notifications: [NamedContent] = []
    /// The presences by name, also those that were only observed.
    public internal(set) var presences: [NamedPresence] = []
    /// The queues by name.
    public internal(set) var queues: [NamedQueue] = []

    mutating func sort() {
      values.sort { $0.identifier.utf8.lexicographicallyPrecedes($1.identifier.utf8) }
      notifications.sort { $0.identifier.utf8.lexicographicallyPrecedes($1.identifier.utf8) }
      presences.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      queues.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }
  }

  /// A value, or the state of a notification.
  public struct NamedContent: Sendable {
    /// What is known of the content.
    public enum Condition: Sendable {
      /// Never written, or removed.
      case absent
      case readable
      /// Reading it fails, and so it does for everybody.
      case unreadable(AppGroupError)
      /// The report had used up its time or bytes.
      case notRead
    }

    /// The identifier, or the notification's name.
    public let identifier: String
    /// The file.
    public let path: String
    /// The file's size, if there is a file.
    public internal(set) var bytes: Int64?
    /// When it was published.
    public internal(set) var modified: Date?
    /// Whether it can be read.
    public internal(set) var condition: Condition = .absent
    /// The 64-bit state; notifications only.
    public internal(set) var state: UInt64?
  }

  /// Who is present under a name.
  public struct NamedPresence: Sendable {
    /// The name.
    public let name: String
    /// Its directory.
    public let path: String
    /// Those who are here, running or suspended, the oldest first.
    public let members: [PresenceMember]
  }

  /// A queue: how much waits, and for whom.
  public struct NamedQueue: Sendable {
    /// The name.
    public let name: String
    /// Its directory.
    public let path: String
    /// How many entries wait.
    public internal(set) var waiting = 0
    /// The bytes of the files of those that wait.
    public internal(set) var waitingBytes: Int64 = 0
    /// When the oldest of them was sent; nil when none waits.
    public internal(set) var oldest: Date?
    /// How many entries are in the files that a consumer has taken, settled ones among them.
    public internal(set) var taken = 0
    /// Who consumes; nil when nobody does.
    public internal(set) var consumer: PresenceMember?
    /// How many ends there are that their senders have not forgotten.
    public internal(set) var outcomes = 0
    /// How many entries have failed and were kept.
    public internal(set) var failed = 0
    /// The first of them, a hundred at most.
    public internal(set) var failures: [QueueFailure] = []
    /// How many entries are in the files that senders keep receipts of.
    public internal(set) var receipts = 0
  }

  /// A lease that is being held.
  public struct HeldLease: Sendable {
    /// Why others may take a lease away.
    public enum Overdue: String, Sendable {
      /// Its holder is stopped.
      case stopped
      /// Its holder has had it for longer than it said.
      case termPassed
    }

    /// Of which value or notification.
    public let identifier: String
    package let kind: NameKind
    /// The file that only the holder may change.
    public let path: String
    /// Who holds it.
    public let holder: LeaseHolder
    /// How long the holder said it would take; nil when it has not said.
    public let term: Duration?
    /// Whether others may take it away. They do so when they want it; it is in nobody's way.
    public let overdue: Overdue?
  }

  /// Something that nobody needs any more.
  public struct Leftover: Sendable {
    /// How it came about.
    public enum Kind: String, Sendable {
      /// A lease that was taken away and not removed to the end.
      case brokenLease
      /// What a process that died during a change had not published.
      case abandonedChange
      /// Large or durable content whose writer died before it was published.
      case abandonedContent
      /// A directory or `container.plist` whose maker died before it had its name.
      case abandonedCreation
      /// The registration of a process that died, or had not quite entered.
      case abandonedPresence
      /// What a sender or consumer of a queue that died had not stored or not removed.
      case abandonedEntry
      /// The mailbox of a process that died.
      case abandonedMailbox
    }

    /// What it is.
    public let kind: Kind
    /// Where it is.
    public let path: String
    /// Whose lease to take before it is removed.
    let owner: ContainerInspection.Owner?
  }

  /// Something that was put aside.
  public struct QuarantinedFile: Sendable {
    /// Where it is now.
    public let path: String
    /// Its size.
    public let bytes: Int64
    /// When it was published.
    public let modified: Date
  }

  /// Something that is none of the container's.
  public struct ForeignEntry: Sendable {
    /// Where it is.
    public let path: String
    /// Whether a value cannot be written as long as it is there.
    public let isInTheWay: Bool
  }

  /// Something that somebody else owns, or could change.
  public struct LooseEntry: Sendable {
    /// Where it is.
    public let path: String
    /// The owner's number.
    public let owner: UInt32
    /// The permission bits.
    public let permissions: UInt32
    /// Whether it belongs to another user than the container.
    public let isForeign: Bool
  }

  /// How much of what the kernel allows a user for watching files is in use.
  public struct WatchUse: Sendable {
    /// `fs.inotify.max_user_watches`.
    public internal(set) var maximumWatches: Int?
    /// `fs.inotify.max_user_instances`.
    public internal(set) var maximumInstances: Int?
    /// Those of the user's processes that can be looked at.
    public internal(set) var watches = 0
    /// Those of the user's processes that can be looked at.
    public internal(set) var instances = 0
    /// Why a listener that began now would get no watch; nil when it would get one.
    public internal(set) var refusal: AppGroupError?
  }
}
