import Wormhole
import WormholeInspection
import WormholeSystem

/// A queue on etcd: its keys, and the one transaction that makes or changes each of them. All begin
/// with `<prefix>/q/<name>/`.
///
/// ```
/// s/<sender>               the stamp and the order of the sender's last batch
/// e/<batch>                a stored batch, as in a directory; rewritten only when an entry is withdrawn
/// c/<consumer>             a consumer, under the session of its process
/// d/<batch>                who has taken it, and how far it is: see `BatchOwner`
/// o/<sender>/<batch>.<n>   how an entry ended that was not processed
/// r/<sender>/<batch>       the batch once more, for a sender that keeps a receipt
/// k/<sender>/<key>         the sender's newest entry with the key, which the next one supersedes
/// f/<batch>.<n>            an entry that its consumer gave up and kept
/// x/<batch>                what was no batch, put aside
/// a/ u/ t/                 the files that accompany entries: see EtcdQueue+Attachments
/// ```
///
/// **Stored once.** Each store replaces `s/<sender>` if it is unchanged, which identifies a repeat
/// after a lost answer; so the batches of a sender get into the queue in the order of their names.
///
/// **Consuming.** Taking makes `d/<batch>`, unless it exists; or replaces it if its consumer is
/// gone. All of these steps have the condition that the consumer's own key exists, or make it. That
/// key ends with the session of its process, and a successor that has the queue alone deletes it:
/// so a consumer that was replaced while it was stopped takes nothing and settles nothing. The end
/// of the last entry of a consumer that takes no more deletes it, too.
///
/// **Ended at once.** The end of an entry, its outcome and its kept failure are one transaction; so
/// are a batch, its receipt and what it supersedes. A withdrawal requires that the batch is not
/// taken.
struct EtcdQueue: Sendable {
  let queue: PlainQueue
  private(set) var container: EtcdContainer
  let prefix: [UInt8]

  init(_ queue: PlainQueue, in container: EtcdContainer) {
    self.queue = queue
    self.container = container
    prefix = container.key(queue.directory.kind, queue.name, part: "/")
  }

  /// The most entries of a batch: the outcomes of all fit into a transaction.
  static let maximumCount = 64

  var path: String { container.location(of: Array(prefix.dropLast())) }

  var client: EtcdClient { container.client }

  /// Returns the same queue for one call; see `EtcdContainer`.
  func call(within caller: ContinuousClock.Instant? = nil) -> EtcdQueue {
    until(container.call(within: caller).callDeadline)
  }

  func until(_ deadline: ContinuousClock.Instant) -> EtcdQueue {
    var call = self
    call.container = container.until(deadline)
    return call
  }

  // MARK: Keys

  func key(_ part: QueueKeyPart, _ name: String) -> [UInt8] { prefix + part.bytes(name) }

  /// - Parameter start: What the names begin with.
  func range(_ part: QueueKeyPart, _ start: String = "") -> KeyRange { .prefix(key(part, start)) }

  func range(from first: QueueKeyPart, through last: QueueKeyPart) -> KeyRange {
    .range(from: key(first, ""), to: KeyRange.end(ofPrefix: key(last, "")))
  }

  var everything: KeyRange { .prefix(prefix) }

  func entryKey(_ batch: EntryFile) -> [UInt8] { key(.entries, batch.text) }

  func ownerKey(_ batch: EntryFile) -> [UInt8] { key(.owners, batch.text) }

  func consumerKey(_ id: String) -> [UInt8] { key(.consumers, id) }

  func receiptKey(_ batch: EntryFile) -> [UInt8] { key(.receipts, "\(batch.sender)/\(batch.text)") }

  func outcomeKey(_ id: QueueEntryID) -> [UInt8] {
    key(.outcomes, "\(id.batch.sender)/\(id.batch.text).\(id.index)")
  }

  func outcomes(of batch: EntryFile) -> KeyRange {
    range(.outcomes, "\(batch.sender)/\(batch.text).")
  }

  func failureKey(_ id: QueueEntryID) -> [UInt8] { key(.failures, "\(id.batch.text).\(id.index)") }

  func markKey(_ sender: String, _ key: String) -> [UInt8] {
    self.key(.marks, "\(sender)/") + EncodedName.key(key)
  }

  /// The part of a key, and what follows it; nil for a foreign one.
  func part(_ key: [UInt8]) -> (part: QueueKeyPart, name: ArraySlice<UInt8>)? {
    let rest = key.dropFirst(prefix.count)
    guard key.starts(with: prefix), rest.count > 2, rest[rest.startIndex + 1] == UInt8(ascii: "/"),
      let part = QueueKeyPart(rawValue: String(decoding: rest.prefix(1), as: UTF8.self))
    else { return nil }
    return (part, rest.dropFirst(2))
  }

  /// The batch of `e/`, `d/`; nil for any other key.
  func batch(_ key: [UInt8]) -> EntryFile? {
    part(key).flatMap { EntryFile(bytes: Array($0.name)) }
  }

  /// The entry that the last component of a key names.
  func id(_ key: [UInt8]) -> QueueEntryID? {
    OutcomeFile.id(String(decoding: key.reversed().prefix { $0 != 0x2F }.reversed(), as: UTF8.self))
  }

  // MARK: Reading and changing

  /// Reads ranges at one revision.
  func read(
    _ ranges: [KeyRange]
  ) throws(EtcdError) -> (items: [[KeyValue]], revision: Int64) {
    let outcome = try container.commit(
      EtcdTransaction(if: [], then: ranges.map { .read($0) }))
    return (outcome.results.map(\.items), outcome.revision)
  }

  func item(_ key: [UInt8]) throws(EtcdError) -> KeyValue? { try read([.key(key)]).items[0].first }

  /// Makes a change that depends on the current keys, until it succeeds: a change that is refused,
  /// or whose outcome is unknown, is computed again.
  ///
  /// - Parameter change: reads, and returns the change, or the result if no change is needed. Its
  ///   argument says whether an earlier change may have been made.
  func changing<Result>(
    _ change: (_ inDoubt: Bool) throws -> Changing<Result>
  ) throws -> Result {
    let deadline = container.callDeadline
    return try container.settling { inDoubt in
      repeat {
        switch try change(inDoubt) {
        case .done(let result): return result
        case .change(let transaction, let result):
          if try container.commit(transaction).succeeded { return result }
        }
      } while .now < deadline
      throw EtcdError(.unreachable, "others change the same all the time")
    }
  }
}

enum Changing<Result> {
  case done(Result)
  case change(EtcdTransaction, Result)
}
