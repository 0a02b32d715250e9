import Synchronization

/// A rule that a test program leaves out, to show that its checks find the loss.
///
/// Only a debug build can leave one out; a release build has no such branch.
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
  case passingClaims = "file-claims"
  /// A publication does not check whether its claim stands.
  case publishingLate = "file-standing"
  /// No process takes a claim over.
  case keepingClaims = "file-takeover"
  /// A claim does not look for others.
  case claimingUnseen = "file-claim"
  /// No process learns that the called process has ended.
  case ignoringEnds = "call-end"

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
