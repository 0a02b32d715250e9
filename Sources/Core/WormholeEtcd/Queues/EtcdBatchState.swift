import Wormhole
import WormholeInspection

/// The known state of a batch at one revision.
struct EtcdBatchState {
  /// A key `e/` with entries of the batch, and who has taken them.
  struct Stored {
    let name: EntryFile
    let item: KeyValue
    /// Nil if it cannot be read.
    let batch: Batch?
    var owner: BatchOwner?
    /// The owner record's key.
    var written: KeyValue?

    /// The state of an entry that has not ended.
    func status(_ index: Int, _ outcomes: [Int: QueueEntryStatus]) -> QueueEntryStatus {
      if owner?.settled.contains(index) == true { return outcomes[index] ?? .processed }
      if let batch, batch.entries[index].payload == nil { return batch.entries[index].withdrawal }
      return owner == nil ? .stored : .taken
    }
  }

  /// The waiting or taken batch; nil if it is gone.
  var whole: Stored?
  /// The entries that workers have shared, by their indices.
  var parts: [Int: Stored] = [:]
  var outcomes: [Int: QueueEntryStatus] = [:]

  func stored(_ index: Int) -> Stored? { whole ?? parts[index] }

  /// An entry that has not ended; nil if it has, or cannot be read.
  func entry(_ index: Int) -> Batch.Entry? {
    stored(index).flatMap {
      $0.owner?.settled.contains(index) == true ? nil : $0.batch?.entries[index]
    }
  }

  func status(_ index: Int) -> QueueEntryStatus {
    stored(index)?.status(index, outcomes) ?? outcomes[index] ?? .processed
  }
}

extension EtcdQueue {
  /// How many ranges are read in one request.
  private static let rangesAtOnce = 96
  /// How many batches are looked at in one request, if each has one entry.
  static let looksAtOnce = rangesAtOnce / 3

  func look(at batch: EntryFile) throws(EtcdError) -> EtcdBatchState { try looks(at: [batch])[0] }

  func looks(at batches: [EntryFile]) throws(EtcdError) -> [EtcdBatchState] {
    var looks: [EtcdBatchState] = []
    var rest = batches[...]
    while !rest.isEmpty {
      var (some, ranges): ([(EntryFile, [KeyRange])], Int) = ([], 0)
      while let batch = rest.first, case let next = self.ranges(of: batch),
        ranges + next.count <= Self.rangesAtOnce
      {
        some.append((batch, next))
        ranges += next.count
        rest.removeFirst()
      }
      var items = try read(some.flatMap(\.1)).items[...]
      for (batch, ranges) in some {
        looks.append(look(at: batch, Array(items.prefix(ranges.count))))
        items = items.dropFirst(ranges.count)
      }
    }
    return looks
  }

  private func ranges(of batch: EntryFile) -> [KeyRange] {
    let own: [KeyRange] = [
      .key(entryKey(batch)), .key(ownerKey(batch)), outcomes(of: batch.whole),
    ]
    return batch.count == 1
      ? own : own + [range(.entries, batch.partsStart), range(.owners, batch.partsStart)]
  }

  private func look(at batch: EntryFile, _ items: [[KeyValue]]) -> EtcdBatchState {
    var look = EtcdBatchState()
    look.whole = stored(items[0].first, items[1])
    for item in items[2] {
      if let id = id(item.key) { look.outcomes[id.index] = OutcomeFile.status(item.value) }
    }
    for item in items.count > 3 ? items[3] : [] {
      guard let part = stored(item, items[4]), let index = part.name.part else { continue }
      look.parts[index] = part
    }
    return look
  }

  private func stored(_ item: KeyValue?, _ owners: [KeyValue]) -> EtcdBatchState.Stored? {
    guard let item, let name = batch(item.key) else { return nil }
    let written = owners.first { batch($0.key) == name }
    return .init(
      name: name, item: item, batch: Batch(found: item.value, count: name.total),
      owner: written.map { BatchOwner($0.value) }, written: written)
  }
}
