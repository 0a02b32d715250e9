#if DEBUG
  import Synchronization

  /// A rule that the torture program leaves out, to show that its checks find the loss.
  ///
  /// Compiled into debug builds only; a release build has no such branch.
  package enum LeaseFault: String, Sendable {
    /// The staged file is created and renamed by path and not through the holder's descriptor, so
    /// it may land in a successor's lease: violates rule 2.
    case stagingByPath = "rule2"
    /// A new holder acts before the leases that were taken over are removed: violates rule 5.
    case actingBeforeRemoval = "rule5"
    /// A consumer of a queue follows its directory to its successor instead of using its former
    /// name.
    case consumingThroughOldDescriptor = "queue"

    private static let current = Mutex<LeaseFault?>(nil)

    /// Leaves the rule out in this process from now on.
    package func begin() { Self.current.withLock { $0 = self } }

    /// Whether this process leaves the rule out.
    package var isActive: Bool { Self.current.withLock { $0 } == self }
  }
#endif
