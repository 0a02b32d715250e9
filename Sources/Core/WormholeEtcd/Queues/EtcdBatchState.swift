import Wormhole
import WormholeInspection

/// The known state of a batch at one revision.
struct EtcdBatchState {
  /// The waiting or taken batch; nil if it is gone.
  var entry: KeyValue?
  /// Its content; nil if it is gone or cannot be read.
  var batch: Batch?
  var claim: BatchOwner?
  /// The claim's key.
  var claimed: KeyValue?
  var outcomes: [Int: QueueEntryStatus] = [:]

  func status(_ index: Int) -> QueueEntryStatus {
    guard entry != nil else { return outcomes[index] ?? .processed }
    if claim?.settled.contains(index) == true { return outcomes[index] ?? .processed }
    if let batch, batch.entries[index].payload == nil { return batch.entries[index].withdrawal }
    return claim == nil ? .stored : .taken
  }
}

extension EtcdQueue {
  /// How many batches are looked at in one request.
  static let looksAtOnce = 32

  func look(at batch: EntryFile) throws(EtcdError) -> EtcdBatchState { try looks(at: [batch])[0] }

  func looks(at batches: [EntryFile]) throws(EtcdError) -> [EtcdBatchState] {
    var looks: [EtcdBatchState] = []
    for some in batches.parts(of: Self.looksAtOnce) {
      let ranges = some.flatMap {
        [.key(entryKey($0)), .key(claimKey($0)), outcomes(of: $0)] as [KeyRange]
      }
      let items = try read(ranges).items.parts(of: 3)
      looks += zip(some, items).map { look(at: $0, Array($1)) }
    }
    return looks
  }

  private func look(at batch: EntryFile, _ items: [[KeyValue]]) -> EtcdBatchState {
    var look = EtcdBatchState()
    look.entry = items[0].first
    look.batch = look.entry.flatMap { Batch(found: $0.value, count: batch.total) }
    if let claim = items[1].first {
      look.claim = BatchOwner(claim.value)
      look.claimed = claim
    }
    for item in items[2] {
      if let id = id(item.key) { look.outcomes[id.index] = OutcomeFile.status(item.value) }
    }
    return look
  }
}
