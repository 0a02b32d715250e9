package import FoundationEssentials
package import Wormhole
package import WormholePropertyLists
import WormholeSystem

/// Something that happened in a container, as a monitor saw it.
package struct ContainerEvent: Sendable {
  package enum Kind: String, Sendable {
    case value, notification, presence, consumer, queue, log, call, lease
  }

  package enum Change: String, Sendable {
    /// It existed when the monitor began: a presence, or one of the package's own values.
    case known
    // A value, or the state of a notification.
    case changed, removed
    // A notification, or a message into a mailbox.
    case posted
    // A process.
    case entered, left, died
    // Entries of a queue.
    case sent, taken, released, acknowledged, failed, cancelled, superseded, expired
    // A message of a log.
    case appended
    // A lease.
    case takenOver = "taken over"
  }

  package let kind: Kind
  /// The identifier; the address of a mailbox.
  package let name: String
  /// Whether the package chose the name, not a user.
  package let isOwn: Bool
  package let change: Change
  /// The time at which the monitor saw it.
  package let time = Date()
  /// The current content.
  package var value: PropertyListValue?
  package var bytes: Int?
  /// The number of entries that it concerns.
  package var count: Int?
  /// The sender of an entry, or the address of the mailbox that a call is from.
  package var sender: String?
  /// The number of a log's message.
  package var number: Int?
  /// The process that did it, if that is recorded.
  package var processID: Int32?
  package var program: String?
  package var peer: String?
  package var host: String?
  /// Further details: the reason for a failure, the kind of a call.
  package var detail: String?
  /// Why the content cannot be read.
  package var problem: String?

  package init(_ kind: Kind, _ change: Change, of name: String, isOwn: Bool = false) {
    self.kind = kind
    self.name = name
    self.isOwn = isOwn
    self.change = change
  }
}

extension ContainerEvent {
  package mutating func take(_ publisher: Publisher?) {
    processID = publisher?.processID
    program = publisher?.program
    peer = publisher?.peer
  }

  package mutating func take(_ member: PresenceMember?) {
    processID = member?.processID
    program = member?.program
    host = member?.host
  }

  /// Takes the bytes of a file, which may be anything: a property list with or without the record of
  /// its publication.
  package mutating func take(content: [UInt8]) {
    var content = content
    take(PublicationRecord.take(from: &content)?.publisher)
    bytes = content.count
    do throws(PropertyListError) {
      value = try PropertyListValue(bytes: content)
    } catch {
      problem = "\(error)"
    }
  }

  /// The event of a message into a mailbox: see `CallMessage` for its keys.
  ///
  /// - Parameter content: Nil if it was delivered before it could be read.
  package static func posted(into address: String, _ content: [UInt8]?, bytes: Int) -> Self {
    var event = Self(.call, .posted, of: address)
    event.bytes = bytes
    guard let content else { return event }
    event.take(content: content)
    let message = event.value
    event.value = message?["value"]
    event.detail = message?["kind"]?.stringValue ?? "message"
    event.sender = message?["replyTo"]?.stringValue
    if event.detail == "failure" { event.value = message?["reason"] }
    return event
  }

  package static func member(
    _ member: PresenceMember, _ change: Change, of name: String, kind: NameKind
  ) -> Self {
    let isConsumer = kind.primitive == .consumer
    var event = Self(isConsumer ? .consumer : .presence, change, of: name, isOwn: kind.isOwn)
    event.take(member)
    event.value = member.content
    return event
  }

  /// - Parameter isOne: Whether it concerns one of the entries that were sent together.
  package static func entries(
    _ batch: EntryFile, of queue: String, isOwn: Bool, _ change: Change, isOne: Bool = false
  ) -> Self {
    var event = Self(.queue, change, of: queue, isOwn: isOwn)
    event.sender = batch.senderName
    event.count = isOne ? 1 : batch.count
    event.bytes = change == .sent ? batch.bytes : nil
    return event
  }
}

/// The consumers of queues and other present processes that a monitor knows.
package struct KnownMembers {
  private var members: [String: [String: PresenceMember]] = [:]

  package init() {}

  /// Records the present processes under a name with its kind; returns those that are new, and those
  /// that have left.
  ///
  /// - Parameter countsProcesses: Whether the registrations of one process count as one. A consumer has
  ///   two while it joins: one keeps others out until it has put their entries back.
  package mutating func update(
    _ place: String, _ live: [PresenceMember], countsProcesses: Bool = false
  ) -> (came: [PresenceMember], went: [PresenceMember]) {
    let before = members[place] ?? [:]
    let now = Dictionary(live.map { ($0.id, $0) }) { first, _ in first }
    members[place] = now.isEmpty ? nil : now
    let came = live.filter { before[$0.id] == nil }
    let went = before.values.filter { now[$0.id] == nil }.sorted { $0.id < $1.id }
    guard countsProcesses else { return (came, went) }
    let are = Set(live.map(\.identity))
    let were = Set(before.values.map(\.identity))
    return (Self.once(came, except: were), Self.once(went, except: are))
  }

  private static func once(
    _ members: [PresenceMember], except others: Set<ProcessIdentity>
  ) -> [PresenceMember] {
    var known = others
    return members.filter { known.insert($0.identity).inserted }
  }

  package func all(_ place: String) -> [PresenceMember] { Array((members[place] ?? [:]).values) }

  /// Returns the consumer that a name in a queue belongs to: it ends with the id of a registration;
  /// otherwise it belongs to the consumer that has the queue alone.
  package func consumer(_ name: String, _ place: String) -> PresenceMember? {
    let members = members[place] ?? [:]
    return members.values.first { name.hasSuffix($0.id) }
      ?? members.values.first(where: \.isExclusive)
      ?? (members.count == 1 ? members.values.first : nil)
  }
}
