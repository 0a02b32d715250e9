import Wormhole

/// What is explored: the operations of two or three processes on one name.
enum Plans {
  /// The operations of each kind of name, each with each.
  static let kinds: [[String]] = [
    ["replace a", "update a", "remove a", "read a", "observe a", "large a", "durable a", "sweep"],
    ["send", "take", "work", "drop", "refuse", "join", "sweep"],
    ["keyed", "sweep"],
    ["append l", "messages", "subscribe", "sweep"],
    ["enter", "exclusive", "mutex", "sweep"],
    ["cwrite", "cread", "cdelete", "cplace", "cmove", "cshare", "cupload", "sweep"],
    ["both", "pair", "update a", "remove b", "copy", "doctor"],
    ["serve", "call", "sweep"],
  ]

  /// Each pair of operations on one name.
  static let pairs: [String] =
    kinds.flatMap { kind in
      kind.indices.flatMap { first in
        kind[first...].filter { kind[first] != "sweep" || $0 != "sweep" }.map {
          "\(more(kind[first])) | \(more($0))"
        }
      }
    } + ["@cdir; cmovedir | cinner"]

  /// Some operations say something only with another one before them.
  private static func more(_ operation: String) -> String {
    switch operation {
    case "send": "send; send"
    case "take", "work": "\(operation) 2"
    case "drop", "refuse": "send; \(operation)"
    case "subscribe": "append l; subscribe"
    case "observe a": "observe a; read a"
    default: operation
    }
  }

  /// Three processes, of which one may be stopped or killed.
  static let triples = [
    "update a | update a | update a",
    "update a | replace a | read a; read a",
    "update a | remove a | update a",
    "@update a; update a | update a; update a | sweep",
    "durable a | update a | observe a",
    "both | both | pair; pair",
    "both | update a | pair",
    "both | update b | both",
    "send; send | take 2 | take 2",
    "send | drop | take 2",
    "send; send | work 2 | work 2",
    "send | take | sweep",
    "append l; append l | append l | messages",
    "append l | subscribe | subscribe",
    "exclusive | exclusive | exclusive",
    "exclusive | enter | sweep",
    "mutex | mutex | mutex",
    "cwrite | cwrite | cread",
    "cwrite | cdelete | cwrite",
    "cplace | cread; cread | cwrite",
    "cwrite; cwrite | cwrite | sweep",
    "serve | call | call",
  ]

  /// A rule that is left out, or a former defect; the commit that mended it; and its plans.
  typealias Fault = (fault: LeaseFault, commit: String, plans: [String])

  /// The plans in which each rule's absence shows; the ones of its kind of name.
  static let mutants: [Fault] = [
    (.stagingByPath, "", ["update a | update a"]),
    (.actingBeforeRemoval, "", ["update a | update a | update a"]),
    (.markingFirst, "", ["update a | update a | update a"]),
    (.waitingForever, "", ["update a | update a"]),
    (.ignoringTimes, "", ["@update a; update a | both"]),
    (.ignoringLock, "", ["@update a; update a | update a"]),
    (.neverRepeating, "", ["update a | update a"]),
    (.removingBlindly, "", ["remove a | update a"]),
    (.leavingTransactions, "", ["both | both", "both | update b"]),
    (.leavingUncommitted, "", ["both | both", "both | both | pair"]),
    (.unmarked, "", ["both | pair; pair"]),
    (.forgettingParts, "", ["both | both"]),
    (.enteringUnseen, "", ["exclusive | exclusive"]),
    (.confirmingUnseen, "", ["exclusive | exclusive"]),
    (.claimingLate, "", ["@append l; subscribe | subscribe"]),
    (.savingLate, "", ["@append l; @append l; subscribe | subscribe"]),
    (.overwritingMessages, "", ["append l | append l; append l"]),
    (.consumingThroughOldDescriptor, "", ["send; take 1 | take 1", "send; send; take 2 | take 2"]),
    (.takingFromLiving, "", ["@send; @send; work 2 | work 2"]),
    (.keepingBatches, "", ["@send; take 1 | take 1"]),
    (.passingReaders, "", ["cplace | cread"]),
    (.passingHolders, "", ["cplace | cread"]),
    (.publishingBeside, "", ["cwrite | cwrite"]),
    (.keepingItems, "", ["cwrite | cwrite"]),
    (.enteringLocked, "", ["cwrite | cwrite"]),
    (.ignoringEnds, "", ["serve | call"]),
  ]

  /// Faults that only delay others, by two seconds; a look once a second is none.
  static let late: Int64 = 1_500_000_000
  static let delays: Set<LeaseFault> = [.missingFormerHolder, .takingDeadForRemoved]

  /// Defects that the code had, the commits that mended them, and the plans in which they show.
  static let past: [Fault] = [
    (.sharingForwards, "6ad9f8c9", ["@burst; work 2 | take"]),
    (.readingBehind, "63f1ecc9", ["cwrite | cread"]),
    (.sweepingPositionsBlindly, "1ff75fe0", ["positions | append l; subscribe; subscribe"]),
    (.lockingFailures, "c57100ad", ["@send; @refuse; again | again"]),
    (.supersedingOlderOnly, "f7477a4f", ["keyed | keyed"]),
    (.reportingSweptNames, "4d241b89", ["@remove b; sweep | doctor"]),
    (.reportingYoungEntries, "4d241b89", ["both | doctor"]),
    (.reportingEndedTransactions, "4d241b89", ["both | doctor"]),
    (.listingRemovedDirectories, "4d241b89", ["@remove b; sweep | doctor"]),
    (.publishingOverOthers, "175dd68b", ["cshare | cread"]),
    (.passingRunningReaders, "4de44a3a", ["cread | clinger | cplace"]),
    (.repeatingCommitted, "1f7c9228", ["bothd | both"]),
    (.failingToJoin, "c770e505", ["join | join"]),
    (.failingToSubscribe, "c770e505", ["@append l; subscribe | subscribe"]),
    (.forgettingRecord, "0d30dde6", ["@send; refuse | take"]),
    (.namingMissingCopy, "4f370e42", ["cwrite | cwrite"]),
    (.namingAccessorError, "4f370e42", ["cwrite | cwrite"]),
    (.reportingPublishedAsLost, "4f370e42", ["cwrite | cwrite"]),
    (.claimingWithoutRole, "08c8e0a5", ["@append l; subscribe | subscribe"]),
    (.missingFormerHolder, "08c8e0a5", ["exclusive | exclusive | exclusive"]),
    (.takingDeadForRemoved, "08c8e0a5", ["exclusive | exclusive"]),
    (.repeatingForClosure, "797ec0d9", ["@send; settle a | take"]),
  ]
}
