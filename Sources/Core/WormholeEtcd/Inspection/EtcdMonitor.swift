import Synchronization
import Wormhole
import WormholeInspection
import WormholeSystem

/// The monitor of a container on etcd: it follows all keys; see their table in the documentation.
///
/// After a compaction that was faster than the watch, and now and then, the keys are listed again,
/// and keys with changed revisions are read and reported.
final class EtcdMonitor: Watching, KeyFollowing {
  private let etcd: EtcdContainer
  private let follower: KeyFollower
  private let keys: Mutex<EtcdKeys>

  init(
    _ etcd: EtcdContainer, isNew: Bool, _ hear: @escaping @Sendable (ContainerEvent) -> Void
  ) throws {
    self.etcd = etcd
    keys = Mutex(EtcdKeys(etcd.start, isNew: isNew, hear))
    follower = KeyFollower(etcd, etcd.keys)
    try follower.begin(for: self, until: .now + CallLimit.standardWait)
  }

  var detection: ChangeDetection { .events }

  func cancel() { follower.cancel() }

  func hear(_ events: [EtcdEvent], of history: Int) {
    keys.withLock { $0.take(events, of: history) }
  }

  func look(until deadline: ContinuousClock.Instant) throws(EtcdError) -> EtcdMoment {
    let call = etcd.until(deadline)
    let found = try call.read(follower.range, keysOnly: true)
    var values: [KeyValue] = []
    for item in keys.withLock({ $0.unread(in: found.items) }) {
      values += try call.read(.key(item.key)).items
    }
    keys.withLock { $0.take(values, of: found.items, at: found.moment) }
    return found.moment
  }
}

/// The meaning of changes of a container's keys.
struct EtcdKeys {
  private let prefix: [UInt8]
  private let hear: (ContainerEvent) -> Void
  /// Whether the first listing predates the monitor.
  private var isBeginning: Bool
  /// Changes up to this moment were reported, or existed before.
  private var moment = EtcdMoment.none
  /// The revision of each key's last change.
  private var known: [[UInt8]: Int64] = [:]
  /// By the keys of their presences.
  private var members: [[UInt8]: KnownMembers] = [:]

  init(_ prefix: [UInt8], isNew: Bool, _ hear: @escaping (ContainerEvent) -> Void) {
    (self.prefix, self.hear, isBeginning) = (prefix, hear, !isNew)
  }

  mutating func take(_ events: [EtcdEvent], of history: Int) {
    for event in events
    where history == moment.history && event.keyValue.modified > moment.revision {
      take(event.keyValue, isPut: event.kind == .put)
    }
    guard history == moment.history, let last = events.last else { return }
    moment.revision = max(moment.revision, last.keyValue.modified)
  }

  /// Returns the keys of a listing whose values have to be read: those that are newer than the known
  /// state; at the beginning the registrations.
  func unread(in listing: [KeyValue]) -> [KeyValue] {
    listing.filter { item in
      isBeginning ? place(of: item.key)?.isRegistration == true : known[item.key] != item.modified
    }
  }

  /// Applies a listing, with the values of its unread keys.
  mutating func take(_ values: [KeyValue], of listing: [KeyValue], at moment: EtcdMoment) {
    guard moment >= self.moment else { return }
    let there = Set(listing.map(\.key))
    for key in known.keys where !there.contains(key) {
      let gone = KeyValue(key: key, value: [], created: 0, modified: 0, version: 0, lease: 0)
      take(gone, isPut: false)
    }
    for value in values where known[value.key] != value.modified { take(value, isPut: true) }
    known = Dictionary(listing.map { ($0.key, $0.modified) }) { $1 }
    (self.moment, isBeginning) = (moment, false)
  }

  private func place(of key: [UInt8]) -> ContainerKey? {
    key.starts(with: prefix) ? ContainerKey(key.dropFirst(prefix.count)) : nil
  }

  private mutating func take(_ item: KeyValue, isPut: Bool) {
    known[item.key] = isPut ? item.modified : nil
    guard let place = place(of: item.key), let letter = CopiedKey.Letter(rawValue: place.letter)
    else { return }
    let kind = NameKind(letter.primitive, isOwn: place.isOwn)
    let report = { [hear] (change: ContainerEvent.Change, author: ContainerEvent.Author?) in
      hear(ContainerEvent(change, kind, place.name, by: author))
    }
    let part = place.rest.first
    switch letter {
    case .value, .state:
      // An empty value was removed before: see `EtcdValue`.
      let content = item.value.dropFirst(CopiedKey.stampBytes)
      report(isPut && !content.isEmpty ? .changed : .removed, .init(publisherOf: content))
    case .post: if isPut { report(.posted, nil) }
    case .log: if isPut, part == "m" { report(.appended, .init(publisherOf: item.value)) }
    case .queue:
      // The record of an owner changes with each delivery.
      let isNews = item.version == 1 || part == QueueKeyPart.entries.rawValue && !isPut
      if isNews, [.entries, .owners].contains(part.flatMap { QueueKeyPart(rawValue: $0) }) {
        report(.changed, place.rest.last.flatMap { .init(senderOf: $0) })
      }
    case .presence, .consumer:
      guard place.isRegistration, let id = place.rest.last else { return }
      let home = Array(item.key.dropLast(id.utf8.count))
      var live = members[home] ?? [:]
      live[id] = PresenceMember(key: item.value, id: id)
      let events = members[home, default: [:]].update(live, kind, place.name)
      members[home] = live.isEmpty ? nil : live
      if !isBeginning { for event in events { hear(event) } }
    }
  }
}

extension ContainerKey {
  fileprivate var isRegistration: Bool {
    (letter == "p" || letter == "c") && rest.count == 2 && rest[0] == "m"
  }
}
