import WormholePropertyLists
import WormholeSystem

/// The engine of a queue: each operation of the public types, as an engine performs it. The public
/// types document the promises, and have the code that does not depend on the engine.
///
/// `sender` is an encoded name. `deadline` is the caller's: requests end by then, too; nil for a caller
/// without one. That holds for all steps of consumers.
package protocol QueueStore: Located {
  // MARK: Senders

  func outlet(for sender: String, _ limits: QueueLimits) -> any BatchWriter

  /// Withdraws waiting entries with a key that are older than an entry that is stored by now.
  func supersede(_ key: String, before id: QueueEntryID)

  /// - Parameter id: the entry; nil for all that wait.
  /// - Returns: the wait that takes entries back; its outcome says how many are cancelled by it.
  func cancellation(
    of id: QueueEntryID?, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<Int>

  func status(of id: QueueEntryID) throws -> QueueEntryStatus

  /// - Returns: nil if the entry no longer exists anywhere.
  func receipt(of id: QueueEntryID) throws -> QueueReceipt?

  func receipts(of sender: String) throws -> [QueueReceipt]

  /// Returns the entries that ended without being processed, in the order of sending.
  func outcomes(of sender: String) throws -> [QueueOutcome]

  /// As `Queue.outstanding`, in no order; of a sender, or of all.
  func unfinished(of sender: String?, limit: Int) throws -> [QueueReceipt]

  func abandoned() throws -> Set<EntryFile>

  func forget(_ id: QueueEntryID) throws

  /// Begins to report which batches to look at again.
  func watchEnds(_ ends: QueueEnds) throws -> any Cancelling

  // MARK: Failures

  func failures() throws -> [QueueFailure]
  func retry(_ id: QueueEntryID) throws -> QueueEntryID?
  func forgetFailure(_ id: QueueEntryID) throws -> Bool

  // MARK: Consumers

  /// Calls a closure when a queue that was never used may be used for the first time.
  ///
  /// - Returns: nil if it was used before.
  func watchFirstUse(_ signal: @escaping @Sendable () -> Void) throws -> (any Cancelling)?

  /// Returns the wait of a process that begins to consume, for the consumers in its way. It begins
  /// with the batches of consumers that are gone.
  func joining(
    _ terms: DeliveryTerms, until deadline: ContinuousClock.Instant?
  ) -> sending any Waiting<QueueMembership>

  // MARK: Care

  func hasEntries() throws -> Bool

  /// Removes expired records of all senders; returns their places, for people.
  func expire() throws -> [String]
}

extension Queue {
  var store: any QueueStore { container.engine(as: (any QueueEngine).self).queue(plain) }
}

/// The source of one consumer's batches. Used by one thread at a time.
package protocol ConsumerSource: Sendable {
  /// Takes the next batch, first abandoned ones, then waiting ones.
  ///
  /// - Throws: `leaseLost`, or `.noSuchFile`, if this consumer was replaced.
  mutating func take(until deadline: ContinuousClock.Instant?) throws -> TakeResult

  /// Notes for the next consumer that what this one has taken, and not returned, was not attempted.
  mutating func close()
}

extension ConsumerSource {
  /// One whose taking is a single step with the batch returns all that it takes.
  package mutating func close() {}
}

/// The outcome of a consumer's step.
package enum TakeResult {
  case batch(TakenBatch)
  /// There was nothing to deliver: look again.
  case again
  /// There is nothing, and until then an entry becomes ready only with an event; nil means ever.
  case nothing(until: ContinuousClock.Instant?)
}

/// A consumer's place in its queue. Thread-safe.
package protocol ConsumerMembership: Sendable {
  /// Returns whether no entry waits, and every taken entry is acknowledged.
  ///
  /// - Parameter countsTaken: Whether the taken ones count.
  func isIdle(countsTaken: Bool) throws -> Bool

  /// Calls a closure whenever there may be a new entry to take, or this consumer was replaced.
  func watch(_ signal: @escaping @Sendable () -> Void) -> [any Cancelling]

  /// Its directory is gone, although it still holds the role. Without a successor, another program
  /// has deleted it; then nothing is created again before the deletion has ended.
  func noteLoss() throws

  /// From now on unacknowledged entries go to the next consumer.
  ///
  /// - Parameters:
  ///   - registration: Ends after it, or with it; nil if there was no room for it.
  ///   - cause: Why it ends.
  func end(_ registration: PresenceRegistration?, _ cause: ConsumerEnd)
}

package enum ConsumerEnd: Sendable {
  case closed
  /// It ends as if this process had died.
  case death
  /// It was replaced, or has just failed to begin: its caller's deadline may have passed, so this does
  /// not wait for the engine.
  case replaced
}

/// A batch that a consumer has taken: the steps with its entries, each of which fails with
/// `leaseLost`, or `.noSuchFile`, once the consumer was replaced.
package protocol TakenBatchStorage: Sendable {
  /// Verifies that the batch is still ours.
  ///
  /// - Parameter looks: Whether to look, or to ask etcd, because the loss could be known too late and
  ///   the next step cannot be undone. Otherwise it is free in a directory.
  func confirm(looks: Bool, until deadline: ContinuousClock.Instant?) throws

  /// Returns the process that has the batch after this consumer has lost it; nil if unknown.
  func successor() throws -> LeaseHolder?

  /// Makes the file that accompanies an entry the consumer's.
  func takeAttachment(_ id: String) throws

  /// The file that accompanies an entry has its place now, so it counts as processed.
  func noteMovedAway(_ id: String) throws

  /// Adds a line to the record of deliveries; see `DeliveryLog`.
  ///
  /// - Returns: whether the record has to be removed with the batch.
  func log(_ line: String, until deadline: ContinuousClock.Instant?) throws -> Bool

  /// Records that an entry must not be delivered again, and how it ended if it was not processed. Its
  /// files go with it.
  func settle(_ settlement: Settlement, until deadline: ContinuousClock.Instant?) throws

  /// All entries are settled, by two threads at once.
  func finish(hasNotes: Bool, until deadline: ContinuousClock.Instant?) throws

  /// Records a consumer's progress with an entry; nil removes the record, which needs no space.
  func mark(_ index: Int, _ text: String?, durability: Durability) throws
  func marked(_ index: Int) throws -> String?
}

package struct Settlement {
  package let id: QueueEntryID
  package let entry: Batch.Entry
  package let status: QueueEntryStatus
  /// Whether it is kept for inspection.
  package let isKept: Bool
  /// Whether everything else in the batch is settled already.
  package let isLast: Bool
  /// Whether its consumer may leave with it.
  package let isFinal: Bool
  /// Whether there are notes beside the batch.
  let hasNotes: Bool
}

/// A process that has begun to consume; its registration is nil if there was no room for it.
///
/// `place` is the part of the source that does not need its thread.
package typealias QueueMembership = (
  source: any ConsumerSource, place: any ConsumerMembership, registration: PresenceRegistration?
)

/// The engine's operations for queues.
package protocol QueueEngine: ContainerEngine {
  func queue(_ queue: PlainQueue) -> any QueueStore
  func attachments(of queue: PlainQueue) -> any AttachmentStore
}
