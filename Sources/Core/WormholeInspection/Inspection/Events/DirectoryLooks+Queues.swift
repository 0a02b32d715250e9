package import Wormhole
import WormholePropertyLists
import WormholeSystem

enum QueuePlace: Equatable {
  case waiting
  /// In the directory of a consumer.
  case taken(String)
}

// Queues.
extension DirectoryLooks {
  /// Beyond this number of senders, those that sent first are forgotten. An entry of such a sender
  /// that was settled before it was seen could be reported twice.
  static let maximumSenders = 1_000

  /// - Parameter isNew: Whether the kernel has reported that it was stored.
  mutating func lookAtBatch(_ place: Place, isNew: Bool = false) {
    if let batch = EntryFile(place.file) { compare(batch, place, isNew: isNew) }
  }

  mutating func lookAtBatches(_ place: Place) {
    for name in (names[place.directory]?.batches ?? [:]).keys {
      if let batch = EntryFile(name) { compare(batch, place) }
    }
  }

  private mutating func compare(_ batch: EntryFile, _ place: Place, isNew: Bool = false) {
    let name = batch.text
    let old = names[place.directory]?.batches[name]
    let new = find(name, place.directory)
    // The batches of a sender have rising orders.
    let last = names[place.directory]?.newest[batch.sender] ?? 0
    names[place.directory]?.newest[batch.sender] = max(last, batch.order)
    forgetOldSenders(of: place.directory)
    if old == nil, new == nil, isNew, batch.order > last { report(batch, .sent, of: place) }
    guard old != new || isNew && old == nil && batch.order > last else { return }
    names[place.directory]?.batches[name] = new
    // One of a batch that workers have shared was reported with it.
    let isShared = batch.part != nil
    if case .taken(let consumer)? = new {
      if old == nil, !isShared { report(batch, .sent, of: place) }
      report(batch, .taken, of: place, by: consumer)
    } else if new == .waiting {
      if old != nil || !isShared { report(batch, old == nil ? .sent : .released, of: place) }
    } else if !isNoted(batch, place.directory) {
      if case .taken(let consumer)? = old {
        report(batch, .acknowledged, of: place, by: consumer)
      } else {
        // A batch that is gone was processed.
        report(batch, .acknowledged, of: place)
      }
    }
  }

  /// Many senders send only once, each from its own process.
  private mutating func forgetOldSenders(of directory: String) {
    guard let all = names[directory]?.newest, all.count > Self.maximumSenders else { return }
    let kept = all.sorted { $0.value > $1.value }.prefix(Self.maximumSenders / 2)
    names[directory]?.newest = Dictionary(kept.map { ($0.key, $0.value) }) { first, _ in first }
  }

  /// Looks twice, because a batch may be taken between looks at the two places where it can be.
  private func find(_ name: String, _ directory: String) -> QueuePlace? {
    for _ in 0..<2 {
      if status(directory + "/" + QueueDirectory.pending + "/" + name) != nil { return .waiting }
      let taken = directory + "/" + QueueDirectory.taken
      for consumer in list(taken) where status("\(taken)/\(consumer)/\(name)") != nil {
        return .taken(consumer)
      }
    }
    return nil
  }

  /// Whether a note records how an entry of a batch ended, or its entries have names of their own.
  private func isNoted(_ batch: EntryFile, _ directory: String) -> Bool {
    if batch.count > 1, batch.indices.contains(where: { find(batch.of($0).text, directory) != nil })
    {
      return true
    }
    let noted = parts[.queue].filter { part in
      part.contains { [.outcome, .failure].contains($0.role) }
    }
    return noted.compactMap(\.name).contains { part in
      batch.indices.contains { status("\(directory)/\(part)/\(batch.whole.text).\($0)") != nil }
    }
  }

  private mutating func report(
    _ batch: EntryFile, _ change: ContainerEvent.Change, of place: Place, by consumer: String? = nil
  ) {
    var event = ContainerEvent.entries(
      batch, of: place.identifier, isOwn: place.kind.isOwn, change)
    if change == .sent { event.take(payloadOf: content(of: batch, place)) }
    if let consumer { event.take(self.consumer(consumer, of: place)) }
    report(event)
  }

  /// Returns a batch as long as it waits or is taken; nil if it was settled since.
  private func content(of batch: EntryFile, _ place: Place) -> [UInt8]? {
    guard !isBeginning, batch.count == 1, batch.bytes <= ContainerEvent.largestPayload else {
      return nil
    }
    let path =
      switch find(batch.text, place.directory) {
      case .waiting?: QueueDirectory.pending
      case .taken(let consumer)?: QueueDirectory.taken + "/" + consumer
      case nil: ""
      }
    return read(
      "\(place.directory)/\(path)/\(batch.text)", maximumBytes: ContainerEvent.largestPayload)
  }

  private func consumer(_ directory: String, of place: Place) -> PresenceMember? {
    let kind = NameKind(.consumer, isOwn: place.kind.isOwn)
    let name = place.directory.split(separator: "/").last ?? ""
    return members.consumer(directory, kind.path + "/" + name)
  }

  mutating func lookAtDeliveries(_ place: Place) {
    guard let batch = QueueDirectory.batch(besideWhich: place.file).flatMap({ EntryFile($0) }),
      !isBeginning, let text = read(place.path, maximumBytes: 1 << 20),
      ContainerEvent.isGivenBack(text)
    else { return }
    report(
      .entries(batch, of: place.identifier, isOwn: place.kind.isOwn, .released, isOne: true))
  }

  mutating func lookAtNote(_ place: Place, isOutcome: Bool) {
    guard let id = OutcomeFile.id(place.file) else { return }
    guard status(place.path) != nil else {
      names[place.directory]?.notes.remove(place.path)
      return
    }
    let isNew = names[place.directory]?.notes.insert(place.path).inserted
    guard isNew == true, !isBeginning else { return }
    // A kept failure is reported once: by the note of the outcome, if there is one.
    if !isOutcome, status("\(place.directory)/\(QueueDirectory.outcomePath(id))") != nil { return }
    guard let bytes = read(place.path, maximumBytes: 1 << 20) else { return }
    report(.ended(id, bytes, isOutcome: isOutcome, of: place.identifier, isOwn: place.kind.isOwn))
  }
}

extension ContainerEvent {
  /// The size of the largest queue entry that is read for display.
  static let largestPayload = 1 << 20

  /// Takes the content of a batch of one entry.
  package mutating func take(payloadOf content: [UInt8]?) {
    guard let content, count == 1 else { return }
    let batch = Batch(found: content, count: 1)
    value = batch?.entries[0].payload
    if batch == nil { problem = "it is no entry" }
  }

  /// Whether a record of deliveries ends with an entry that was given back: see `DeliveryLog`.
  package static func isGivenBack(_ deliveries: [UInt8]) -> Bool {
    let last = deliveries.split(separator: UInt8(ascii: "\n")).last
    let words = last?.split(separator: UInt8(ascii: " "), maxSplits: 3) ?? []
    return words.count > 2 || words.count == 2 && words[1].first == UInt8(ascii: "-")
  }

  package static func ended(
    _ id: QueueEntryID, _ note: [UInt8], isOutcome: Bool, of queue: String, isOwn: Bool
  ) -> Self {
    let (change, reason): (Change, String?) =
      switch isOutcome ? OutcomeFile.status(note) : .failed(reason: reason(ofFailure: note)) {
      case .processed: (.acknowledged, nil)
      case .cancelled: (.cancelled, nil)
      case .superseded: (.superseded, nil)
      case .expired: (.expired, nil)
      case .failed(let reason): (.failed, reason)
      case .stored, .taken: (.acknowledged, nil)
      }
    var event = entries(id.batch, of: queue, isOwn: isOwn, change, isOne: true)
    event.detail = reason
    return event
  }

  private static func reason(ofFailure note: [UInt8]) -> String {
    do throws(PropertyListError) {
      return try PropertyListValue(bytes: note)["reason"]?.stringValue ?? "no reason was given"
    } catch {
      return "its note is damaged: \(error)"
    }
  }
}
