import WormholePropertyLists
import WormholeSystem

/// What a queue stands on: each operation of the public types, as an engine performs it. What they
/// promise, and what does not depend on the engine, is there.
package protocol QueueStore: Sendable {
  /// Where it is, for people.
  var path: String { get }

  // MARK: Senders

  /// The writer of a sender's batches.
  func outlet(for sender: String, _ limits: Queue.Limits) -> any QueueOutlet

  /// Withdraws waiting entries with a key that are older than an entry that is stored by now.
  func supersede(_ key: String, before id: QueueEntryID)

  func cancel(_ id: QueueEntryID, until deadline: ContinuousClock.Instant?) throws -> Bool
  func cancel(_ id: QueueEntryID, until deadline: ContinuousClock.Instant?) async throws -> Bool

  func status(of id: QueueEntryID) throws -> QueueEntryStatus

  /// - Returns: nil if the entry no longer exists anywhere.
  func receipt(of id: QueueEntryID) throws -> QueueReceipt?

  /// - Parameter sender: encoded, as in all of these.
  func receipts(of sender: String) throws -> [QueueReceipt]

  /// Returns the waiting and taken entries of a sender, in no order.
  func unfinished(of sender: String) throws -> [QueueReceipt]

  /// Returns the waiting and taken entries of all senders, in no order.
  ///
  /// - Parameter limit: How many of those that wait are enough, from the first to be delivered.
  func unfinished(limit: Int) throws -> [QueueReceipt]

  /// Cancels what waits.
  ///
  /// - Parameter deadline: How long to wait for others that cancel.
  /// - Returns: How many entries this has cancelled.
  func cancelAll(until deadline: ContinuousClock.Instant?) throws -> Int

  /// Returns what has ended otherwise than by being processed, in the order of sending.
  func outcomes(of sender: String) throws -> [QueueOutcome]

  func forget(_ id: QueueEntryID) throws

  /// The watch that tells callers which batches to look at again.
  func endWatch() -> any QueueEnds

  // MARK: Failures

  func failures() throws -> [QueueFailure]
  func retry(_ id: QueueEntryID) throws -> QueueEntryID?
  func forgetFailure(_ id: QueueEntryID) throws -> Bool

  // MARK: Consumers

  /// Calls a closure when a queue that was never used may be used for the first time.
  ///
  /// - Returns: nil if it was used before.
  func watchFirstUse(_ signal: @escaping @Sendable () -> Void) throws -> (any Cancelling)?

  /// Begins to consume, with what others have left that are gone.
  func source(for role: ConsumerRole, _ terms: DeliveryTerms) throws -> any ConsumerSource

  // MARK: Care

  func hasEntries() throws -> Bool

  /// Removes expired records of all senders.
  ///
  /// - Parameter later: for tests: the time in nanoseconds by which the clock is ahead.
  /// - Returns: the removed paths.
  func expire(later: UInt64) throws -> [String]

  /// Removes what dead senders and consumers left.
  func sweep() throws
}

extension Queue {
  var store: any QueueStore { container.engine.queue(self) }
}

/// What one consumer takes its batches from. Used by one thread at a time.
package protocol ConsumerSource: Sendable {
  /// What does not need that thread.
  var place: any ConsumerPlace { get }
  /// What other workers have, and this one waits for, because it keeps the order of senders.
  var obstacles: Set<EntryFile> { get }
  /// When something may be to take without an event; nil if never.
  var due: ContinuousClock.Instant? { get }

  /// Another consumer came, left or died.
  mutating func noteChange()

  /// Takes the next batch, first what was left to this consumer, then what waits.
  ///
  /// - Throws: `leaseLost`, or `.noSuchFile`, if this consumer was replaced.
  mutating func take() throws -> Taking
}

/// The outcome of a step of a consumer.
package enum Taking {
  case batch(TakenBatch)
  /// Nothing to deliver came of it: look again.
  case again
  case nothing
}

/// A consumer's place in its queue. Thread-safe.
package protocol ConsumerPlace: Sendable {
  /// Returns whether nothing waits, and nothing taken is still to be acknowledged.
  func isIdle() throws -> Bool

  /// Calls a closure whenever there may be something new to take, or this consumer was replaced.
  func watch(_ signal: @escaping @Sendable () -> Void) -> [any Cancelling]

  /// This consumer was replaced, although it still has its role. Without a successor a program removes
  /// files: then nothing is created again before that has ended.
  func noteLoss() throws

  /// What was not acknowledged goes to the next consumer from now on.
  func end()
}

/// A batch as its consumer has it: the steps with its entries, each of which fails with `leaseLost`,
/// or `.noSuchFile`, once the consumer was replaced.
package protocol TakenStore: Sendable {
  /// Checks, where that is not free of cost, that nobody else can have been given the batch; called
  /// before each delivery.
  func confirm() throws

  /// The same, and asks where it may be known too late: what follows cannot be undone.
  func confirmNow() throws

  /// Returns who has the batch now, after this consumer has lost it; nil if that is not known.
  func successor() throws -> LeaseHolder?

  /// Makes the file that accompanies an entry the consumer's.
  func takeAttachment(_ id: String) throws

  /// The file that accompanies an entry has its place now, so it counts as processed.
  func noteClaimed(_ id: String) throws

  /// Adds a line to the record of deliveries; see `DeliveryLog`.
  ///
  /// - Returns: whether that is to be removed with the batch.
  func log(_ line: String) throws -> Bool

  /// Records that an entry is not to be delivered again, and how it ended if it was not processed.
  func settle(_ settlement: Settlement) throws

  /// All entries are settled, by two threads at once.
  func finish(hasNotes: Bool) throws

  /// Removes what belongs to an entry that has ended; none of it matters to anybody.
  func clear(_ settlement: Settlement)

  /// Records a consumer's progress with an entry.
  func mark(_ index: Int, _ text: String, durability: Durability) throws
  func unmark(_ index: Int) throws
  func marked(_ index: Int) throws -> String?
}

/// The end of an entry.
package struct Settlement {
  package let id: QueueEntryID
  package let entry: Batch.Entry
  package let status: QueueEntryStatus
  /// Whether it is kept for inspection.
  package let isKept: Bool
  /// Whether everything else in the batch is settled already.
  package let isLast: Bool
  /// Whether there are notes beside the batch.
  let hasNotes: Bool
}

/// Whose right a consumer takes by.
package enum ConsumerRole {
  case alone(PresenceRegistration)
  /// One of several, which has the role of the only one while it begins.
  case worker(PresenceRegistration, gate: PresenceRegistration)
  /// One of several, for whose registration there was no room.
  case unregistered(AppGroupError)
}
