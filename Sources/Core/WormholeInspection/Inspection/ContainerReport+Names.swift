public import FoundationEssentials
public import Wormhole

extension ContainerReport {
  /// All names of one origin, sorted.
  ///
  /// ```swift
  /// let names = try container.report().names
  /// print(names.values.count, "values,", names.queues.count, "queues,", names.logs.count, "logs")
  /// ```
  public struct Names: Sendable, Encodable {
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
    /// The number of values that the report did not need.
    package var left = 0

    private enum CodingKeys: CodingKey { case values, notifications, presences, queues, logs }

    package init() {}
  }

  /// A value, or the state of a notification.
  ///
  /// ```swift
  /// for value in try container.report().names.values { print(value.identifier, value.bytes ?? 0) }
  /// ```
  public struct NamedContent: Sendable, Encodable {
    /// The state of the content.
    ///
    /// ```swift
    /// for value in try container.report().names.values {
    ///   if value.condition == .absent { print(value.identifier, "was cleared") }
    /// }
    /// ```
    public enum Condition: String, Sendable, Encodable {
      /// Never written, removed, or expired.
      case absent
      /// It was read.
      case readable
      /// Reading it fails for every process.
      case unreadable
      /// The report had used up its time or its bytes.
      case notRead
    }

    /// The identifier, or the notification's name.
    public let identifier: String
    /// The same in an encoding, where each name of any kind has this key.
    let name: String
    /// The file.
    public let path: String
    /// The use of one of the package's own values; nil for a user's.
    public package(set) var title: String?
    /// The version of the content; nil if it was not read.
    public package(set) var version: Version?
    /// The size of the content; of content that was not read, the size of its file.
    public package(set) var bytes: Int64?
    /// The time of its publication.
    public package(set) var modified: Date?
    /// The process that published the content; nil if the record does not name it.
    public package(set) var publisher: Publisher?
    /// The moment from which it counts as never written; nil if it does not expire.
    public package(set) var expires: Date?
    /// Whether it can be read.
    public package(set) var condition: Condition = .absent
    /// Why it cannot be read.
    public package(set) var problem: WormholeError?
    /// When an older version was published that the container kept in case the last one is lost.
    /// Readers get it, if the content is readable; otherwise `Value.quarantine` makes it the value.
    public package(set) var kept: Date?
    /// The 64-bit state; notifications only.
    public package(set) var state: UInt64?

    package init(identifier: String, path: String) {
      self.identifier = identifier
      name = identifier
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
  public struct NamedPresence: Sendable, Encodable {
    /// The name.
    public let name: String
    /// Its directory.
    public let path: String
    /// The use of one of the package's own names; nil for a user's.
    public let title: String?
    /// The present processes, running or suspended, the oldest first.
    public let members: [PresenceMember]

    package init(name: String, path: String, title: String?, members: [PresenceMember]) {
      self.name = name
      self.path = path
      self.title = title
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
  public struct NamedQueue: Sendable, Encodable {
    /// The name.
    public let name: String
    /// Its directory.
    public let path: String
    /// The use of one of the package's own queues; nil for a user's.
    public package(set) var title: String?
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

    /// The failures, whose content may be large, are not encoded.
    private enum CodingKeys: String, CodingKey {
      case name, path, title, waiting, delayed, nextDue, waitingBytes, oldest, taken, consumer
      case workers, outcomes, failed, receipts
    }

    package init(name: String, path: String, title: String?) {
      self.name = name
      self.path = path
      self.title = title
    }
  }

  /// A log with its messages and its named subscribers.
  ///
  /// ```swift
  /// for log in try container.report().names.logs { print(log.name, log.messages, log.last ?? 0) }
  /// ```
  public struct NamedLog: Sendable, Encodable {
    /// A named subscriber.
    ///
    /// ```swift
    /// for reading in try container.report().names.logs.flatMap(\.subscribers) {
    ///   print(reading.subscriber.name, reading.process?.program ?? "nobody reads for it")
    /// }
    /// ```
    public struct Reading: Sendable, Encodable {
      /// Its name and position.
      public let subscriber: LogSubscriber
      /// The process that reads for it; nil if none does.
      public let process: PresenceMember?

      private enum CodingKeys: CodingKey { case process }

      /// Encodes the subscriber with its process.
      public func encode(to encoder: any Encoder) throws {
        try subscriber.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(process, forKey: .process)
      }
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
    public package(set) var problem: WormholeError?

    package init(name: String, path: String) {
      self.name = name
      self.path = path
    }
  }
}
