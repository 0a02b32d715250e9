import Wormhole
import WormholeInspection
import WormholePropertyLists

/// The meaning of changes of a container's keys: see the table of the keys in the documentation.
struct EtcdKeys {
  private typealias Place = ContainerKey

  /// The keys whose values are known from the beginning: the package's own values, and presences.
  static let begin: [(letter: String, isOwn: Bool)] = [
    ("v", true), ("p", false), ("p", true), ("c", false), ("c", true),
  ]

  /// The events and reads of a follower of the keys.
  enum News {
    case events([EtcdEvent], history: Int)
    /// All keys, and the values of those that differ from the known state.
    case listing(EtcdClient.Content, values: [KeyValue], isBeginning: Bool)
  }

  private let prefix: [UInt8]
  private let hear: (ContainerEvent) -> Void
  /// Changes up to this moment were reported, or existed before.
  private var moment = EtcdMoment.none
  /// The revision of each key's last change.
  private var known: [[UInt8]: Int64] = [:]
  private var members = KnownMembers()
  /// By the names of their batches, with those of their queues.
  private var claims: [String: BatchClaim] = [:]

  init(_ prefix: [UInt8], _ hear: @escaping (ContainerEvent) -> Void) {
    self.prefix = prefix
    self.hear = hear
  }

  mutating func take(_ news: News) {
    switch news {
    case .events(let events, let history):
      let new = events.filter {
        history == moment.history && $0.keyValue.modified > moment.revision
      }
      take(new)
      moment.revision = new.last?.keyValue.modified ?? moment.revision
    case .listing(let listing, let values, let isBeginning):
      guard listing.moment >= moment else { return }
      if isBeginning { begin(with: values) } else { takeMissed(values, of: listing.items) }
      known = Dictionary(listing.items.map { ($0.key, $0.modified) }) { $1 }
      moment = listing.moment
    }
  }

  /// Returns the keys of a listing that are newer than the known state.
  func changed(in listing: [KeyValue]) -> [KeyValue] {
    listing.filter { known[$0.key] != $0.modified }
  }

  private mutating func begin(with items: [KeyValue]) {
    for item in items {
      guard let place = place(of: item.key) else { continue }
      switch place.letter {
      case "v": hear(value(.known, of: place, item))
      case _ where place.rest.first == "m": update(place, by: item, .known)
      default: continue
      }
    }
  }

  private mutating func take(_ events: [EtcdEvent]) {
    var revision: [EtcdEvent] = []
    for event in events {
      if let last = revision.last, last.keyValue.modified != event.keyValue.modified {
        takeRevision(revision)
        revision = []
      }
      revision.append(event)
    }
    takeRevision(revision)
  }

  /// Applies a listing: values that have changed, and keys that are gone.
  private mutating func takeMissed(_ values: [KeyValue], of listing: [KeyValue]) {
    let there = Set(listing.map(\.key))
    for key in known.keys where !there.contains(key) {
      let gone = KeyValue(key: key, value: [], created: 0, modified: 0, version: 0, lease: 0)
      takeRevision([EtcdEvent(kind: .delete, keyValue: gone)])
    }
    for value in values where known[value.key] != value.modified {
      takeRevision([EtcdEvent(kind: .put, keyValue: value)])
    }
  }

  // MARK: Decoding

  private func place(of key: [UInt8]) -> Place? {
    key.starts(with: prefix) ? ContainerKey(key.dropFirst(prefix.count)) : nil
  }

  private mutating func takeRevision(_ events: [EtcdEvent]) {
    let places = events.compactMap { event in
      self.place(of: event.keyValue.key).map { (place: $0, event: event) }
    }
    // The same transaction records who left, or how an entry ended.
    let left = places.compactMap { $0.place.rest == ["last"] ? Self.left($0.event.keyValue) : nil }
    let noted = places.compactMap { Self.noted($0.place, $0.event) }
    for (place, event) in places {
      let item = event.keyValue
      let isPut = event.kind == .put
      switch place.letter {
      case "v", "s":
        // An empty value was removed before: see `EtcdValue`.
        let isThere = isPut && item.value.count > CopiedKey.stampBytes
        hear(value(isThere ? .changed : .removed, of: place, item))
      case "n": if isPut { hear(ContainerEvent(.notification, .posted, of: place.name)) }
      case "p", "c":
        guard place.rest.first == "m" else { break }
        if isPut, !item.value.isEmpty {
          update(place, by: item, .entered)
        } else {
          remove(place, hasLeft: isPut || left.contains(place.rest.last ?? ""))
        }
      case "q": take(event, of: place, noted)
      case "l": if isPut { append(place, item) }
      case "b":
        if isPut, place.rest.count == 1, let entry = EntryFile(place.rest[0]) {
          hear(.posted(into: place.name, item.value, bytes: entry.bytes))
        }
      default: break
      }
      known[item.key] = isPut ? item.modified : nil
    }
  }

  private func value(
    _ change: ContainerEvent.Change, of place: Place, _ item: KeyValue
  ) -> ContainerEvent {
    var event = ContainerEvent(
      place.letter == "s" ? .notification : .value, change, of: place.name, isOwn: place.isOwn)
    if change != .removed, item.value.count > CopiedKey.stampBytes {
      event.take(content: Array(item.value.dropFirst(CopiedKey.stampBytes)))
    }
    return event
  }

  /// Returns the id of a registration whose record says that it has left.
  private static func left(_ item: KeyValue) -> String? {
    let record = PropertyListValue(found: item.value)
    return record?["ended"] == nil ? nil : record?["id"]?.stringValue
  }

  private func append(_ place: Place, _ item: KeyValue) {
    guard place.rest.count == 2, place.rest[0] == "m",
      let number = LogState.number(ofDigits: place.rest[1].utf8)
    else { return }
    var event = ContainerEvent(.log, .appended, of: place.name)
    event.number = number
    event.take(content: item.value)
    hear(event)
  }

  // MARK: Presences

  private mutating func update(
    _ place: Place, by item: KeyValue, _ change: ContainerEvent.Change
  ) {
    guard let id = place.rest.last, let member = PresenceMember(key: item.value, id: id) else {
      return
    }
    let others = members.all(place.id).filter { $0.id != id }
    guard !members.update(place.id, others + [member]).came.isEmpty else { return }
    hear(.member(member, change, of: place.name, kind: place.kind))
  }

  private mutating func remove(_ place: Place, hasLeft: Bool) {
    let others = members.all(place.id).filter { $0.id != place.rest.last }
    for member in members.update(place.id, others).went {
      hear(.member(member, hasLeft ? .left : .died, of: place.name, kind: place.kind))
    }
  }

  // MARK: Queues

  /// Returns the entry whose end a key records; nil for any other key.
  private static func noted(_ place: Place, _ event: EtcdEvent) -> QueueEntryID? {
    guard event.kind == .put, let last = place.rest.last,
      [QueueKeyPart.outcomes, .failures].contains(place.part)
    else { return nil }
    return OutcomeFile.id(last)
  }

  private mutating func take(_ event: EtcdEvent, of place: Place, _ noted: [QueueEntryID]) {
    guard let part = place.part, let last = place.rest.last else { return }
    let item = event.keyValue
    switch (part, event.kind) {
    case (.entries, .put):
      guard item.version == 1, let batch = EntryFile(last) else { return }
      var sent = ContainerEvent.entries(batch, of: place.name, isOwn: place.isOwn, .sent)
      sent.take(payloadOf: item.value)
      hear(sent)
    case (.entries, .delete):
      guard let batch = EntryFile(last) else { return }
      let claim = claims.removeValue(forKey: place.id + "/" + last)
      guard !noted.contains(where: { $0.batch == batch }) else { return }
      var ended = ContainerEvent.entries(
        batch, of: place.name, isOwn: place.isOwn, .acknowledged)
      ended.take(consumer(claim, place))
      hear(ended)
    case (.claims, .put):
      guard let batch = EntryFile(last) else { return }
      take(BatchClaim(item.value), on: batch, of: place)
    case (.outcomes, .put), (.failures, .put):
      guard let id = OutcomeFile.id(last) else { return }
      // A kept failure has both.
      if part == .failures, noted.filter({ $0 == id }).count > 1 { return }
      hear(.ended(id, item.value, isOutcome: part == .outcomes, of: place.name, isOwn: place.isOwn))
    default: return
    }
  }

  private mutating func take(_ claim: BatchClaim, on batch: EntryFile, of place: Place) {
    let old = claims.updateValue(claim, forKey: place.id + "/" + batch.text)
    var event: ContainerEvent
    if old?.consumer != claim.consumer {
      event = .entries(batch, of: place.name, isOwn: place.isOwn, .taken)
    } else if claim.deliveries != old?.deliveries,
      ContainerEvent.isGivenBack(Array(claim.deliveries.utf8))
    {
      event = .entries(batch, of: place.name, isOwn: place.isOwn, .released, isOne: true)
    } else {
      return
    }
    event.take(consumer(claim, place))
    hear(event)
  }

  private func consumer(_ claim: BatchClaim?, _ place: Place) -> PresenceMember? {
    guard let claim else { return nil }
    return members.consumer(claim.consumer, place.id("c"))
  }
}

extension ContainerKey {
  fileprivate var part: QueueKeyPart? {
    letter == "q" ? rest.first.flatMap { QueueKeyPart(rawValue: $0) } : nil
  }
  fileprivate var kind: NameKind { NameKind(letter == "c" ? .consumer : .presence, isOwn: isOwn) }
  /// The same for all keys of a name.
  fileprivate var id: String { id(letter) }
  /// Encoded, because two names may be equal as strings.
  fileprivate func id(_ letter: String) -> String {
    (isOwn ? "own/" : "") + letter + "/" + EncodedName.text(ofKey: name)
  }
}
