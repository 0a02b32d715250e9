package import FoundationEssentials
package import Wormhole
package import WormholeSystem

/// Something that happened to a name in a container, as a monitor saw it.
package struct ContainerEvent: Sendable {
  package enum Change: String, Sendable {
    // A value, or the state of a notification; a queue, whose entries were sent, taken or processed.
    case changed, removed
    // A notification.
    case posted
    // A process.
    case entered, left
    // A message of a log.
    case appended
  }

  /// Who did it, where a file or a key says so.
  package enum Author: Sendable {
    case publisher(Publisher)
    case process(PresenceMember)
    case sender(String)
  }

  package let change: Change
  package let kind: NameKind
  package let name: String
  package let author: Author?
  /// The time at which the monitor saw it.
  package let time = Date()

  package init(_ change: Change, _ kind: NameKind, _ name: String, by author: Author? = nil) {
    (self.change, self.kind, self.name, self.author) = (change, kind, name, author)
  }
}

extension ContainerEvent.Author {
  /// The publisher of the content of a value or a message of a log; nil if it names none.
  package init?(publisherOf content: some Sequence<UInt8>) {
    var bytes = Array(content)
    guard let publisher = PublicationRecord.take(from: &bytes)?.publisher else { return nil }
    self = .publisher(publisher)
  }

  /// The sender of entries of a queue, by their name; nil for any other name.
  package init?(senderOf entries: String) {
    guard let entries = EntryFile(entries) else { return nil }
    self = .sender(entries.senderName)
  }
}

/// The processes that a monitor knows to be present under a name.
package typealias KnownMembers = [String: PresenceMember]

extension KnownMembers {
  /// Records the present registrations, by their ids; returns the events of processes that had none
  /// before, or no longer have one. A consumer has two while it joins.
  package mutating func update(
    _ live: KnownMembers, _ kind: NameKind, _ name: String
  ) -> [ContainerEvent] {
    let before = exchange(&self, with: live)
    func events(
      _ change: ContainerEvent.Change, _ members: KnownMembers, except others: KnownMembers
    ) -> [ContainerEvent] {
      var known = Set(others.values.map(\.identity))
      return members.values.filter { known.insert($0.identity).inserted }
        .map { ContainerEvent(change, kind, name, by: .process($0)) }
    }
    return events(.entered, live, except: before) + events(.left, before, except: live)
  }
}

extension SharedContainer {
  /// Reports the events of the container, until the result is cancelled or released.
  ///
  /// It only reads: it creates nothing, takes no lease, and consumes nothing. In a directory the
  /// kernel's events say where to look, and each name is compared with what was seen before; on etcd one
  /// watch of all keys reports every change. After a burst the last state is reported.
  ///
  /// - Parameters:
  ///   - isNew: Whether everything that already exists is reported as if it had just happened.
  ///   - hear: Called one at a time.
  /// - Throws: `WormholeError` if the container cannot be read.
  package func monitor(
    isNew: Bool = false, _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) throws -> any Watching {
    try reporting("watch the container", path: location) {
      try ThreadShortage.ruleOut()
      return try inspected.monitor(self, isNew: isNew, hear)
    }
  }
}
