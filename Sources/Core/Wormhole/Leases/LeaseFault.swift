import Synchronization

/// A rule that a test program leaves out, or a former defect that it switches on again, to show that its
/// checks find it.
///
/// Only a debug build can do that; a release build has no such branch.
package enum LeaseFault: String, Sendable, CaseIterable {
  /// The staged file is created and renamed by path, not through the holder's descriptor, so it may
  /// land in a successor's lease: violates rule 2.
  case stagingByPath = "rule2"
  /// A new holder acts before the leases that were taken over are removed: violates rule 5.
  case actingBeforeRemoval = "rule5"
  /// A new holder notes that all former leases are gone before it has removed them.
  case markingFirst = "marking-first"
  /// No process takes a lease over.
  case waitingForever = "no-takeover"
  /// A kept lease is used again whatever others have done since.
  case ignoringTimes = "warm-times"
  /// A kept lease is used again without its lock.
  case ignoringLock = "warm-lock"
  /// A change that lost its lease is not made again.
  case neverRepeating = "no-repeat"
  /// A removal that finds nothing does not check whether its lease is lost.
  case removingBlindly = "blind-removal"
  /// The next holder does not finish a transaction.
  case leavingTransactions = "transaction-settling"
  /// The next holder does not end a transaction that is not committed.
  case leavingUncommitted = "transaction-end"
  /// The values of a transaction are not marked for readers.
  case unmarked = "transaction-mark"
  /// A transaction is removed when one of its parts is finished.
  case forgettingParts = "transaction-parts"
  /// A process enters a role although another one has it by then.
  case enteringUnseen = "role-under-lease"
  /// A process does not check whether its role was taken over.
  case confirmingUnseen = "role-confirm"
  /// A process whose role was taken over may still move a subscriber's position.
  case claimingLate = "log-claim"
  /// A reader of a log does not check whether another one reads for its subscriber.
  case savingLate = "log-save"
  /// A message takes a number that another one has.
  case overwritingMessages = "log-number"
  /// A consumer of a queue follows its directory to its successor instead of using its former
  /// name.
  case consumingThroughOldDescriptor = "queue"
  /// A consumer takes the entries of one that runs.
  case takingFromLiving = "queue-living"
  /// A batch stays when all its entries are acknowledged.
  case keepingBatches = "queue-batch"
  /// An access in place does not wait for readers.
  case passingReaders = "file-readers"
  /// A reader does not look for an access in place.
  case passingHolders = "file-holders"
  /// The copy of a coordinated file is published through its own directory, not through the lease.
  case publishingBeside = "file-rule2"
  /// No process takes a coordinated file over.
  case keepingItems = "file-takeover"
  /// A process enters the lease of a coordinated file that another one has locked.
  case enteringLocked = "file-lock"
  /// No process learns that the called process has ended.
  case ignoringEnds = "call-end"

  // Former defects: each restores what the code did before it was mended.

  /// A batch that is shared among workers was put back from its first entry on, so that a killed
  /// worker kept a later entry than those that waited.
  case sharingForwards = "was-shared-forwards"
  /// A reader did not wait for writers that were at work when it began.
  case readingBehind = "was-reading-behind"
  /// A sweep looked for logs only once, before it waited for the lease of a subscriber's position.
  case sweepingPositionsBlindly = "was-swept-position"
  /// A failed entry was sent again under its lock, which a stopped process kept.
  case lockingFailures = "was-locked-failure"
  /// An entry gave way to a newer one of its key only if that one was stored later.
  case supersedingOlderOnly = "was-two-of-a-key"
  /// A name that was swept during an inspection counted as foreign.
  case reportingSweptNames = "was-foreign-name"
  /// What a process began to write during an inspection counted as left.
  case reportingYoungEntries = "was-left-entry"
  /// A transaction that ended during an inspection counted as foreign.
  case reportingEndedTransactions = "was-foreign-transaction"
  /// A directory that was removed during an inspection was an error of the inspection.
  case listingRemovedDirectories = "was-unlisted-directory"
  /// The second of two accesses of one purpose replaced the first one's change.
  case publishingOverOthers = "was-replaced-change"
  /// A writer passed a reader that ran if another reader was stopped.
  case passingRunningReaders = "was-passed-reader"
  /// A durable transaction was made again if another process had finished it after its commit.
  case repeatingCommitted = "was-made-again"
  /// A consumer that was replaced while it joined failed, although it had begun nothing.
  case failingToJoin = "was-failed-join"
  /// A subscriber that was replaced while it subscribed failed, although it had read nothing.
  case failingToSubscribe = "was-failed-subscription"
  /// A failure that was recorded was reported as lost if the consumer was replaced after that.
  case forgettingRecord = "was-lost-failure"
  /// An access that was taken over while it copied failed for want of a file.
  case namingMissingCopy = "was-missing-copy"
  /// An accessor whose copy was taken away failed for want of it.
  case namingAccessorError = "was-missing-file"
  /// An access that was published, and then stopped and taken over, was reported as overtaken.
  case reportingPublishedAsLost = "was-denied-change"
  /// A subscriber that was replaced while it subscribed still set the position.
  case claimingWithoutRole = "was-moved-position"
  /// A process that entered a role between two looks was taken for one that was removed.
  case missingFormerHolder = "was-missed-holder"
  /// A dead process that had a role was taken for one that was removed.
  case takingDeadForRemoved = "was-dead-holder"
  /// A change was made again if its closure threw the loss of another lease.
  case repeatingForClosure = "was-repeated-closure"

  private static let current = Mutex<LeaseFault?>(nil)

  /// Leaves the rule out in this process from now on.
  package func begin() { Self.current.withLock { $0 = self } }

  /// Whether this process leaves the rule out.
  @inline(__always)
  package var isActive: Bool {
    #if DEBUG
      Self.current.withLock { $0 } == self
    #else
      false
    #endif
  }
}
