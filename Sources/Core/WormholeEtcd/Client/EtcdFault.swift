#if DEBUG
  import Synchronization

  /// A rule of the protocols on etcd that the torture program leaves out, to show that its checks find
  /// the loss.
  ///
  /// Compiled into debug builds only; a release build has no such branch.
  package enum EtcdFault: String, Sendable {
    /// A change is put whatever the key has become, without the condition that it is unchanged.
    case changingBlindly = "put"
    /// A watch whose connection was lost continues one revision too late.
    case resumingLate = "watch"
    /// The key of a consumer, or of a registration, is not a condition of its changes, and it does
    /// not check its session: so one that was stopped for too long continues as if it had not been.
    case forgettingFence = "fence"

    private static let current = Mutex<EtcdFault?>(nil)

    /// Leaves the rule out in this process from now on.
    package func begin() { Self.current.withLock { $0 = self } }

    package var isActive: Bool { Self.current.withLock { $0 } == self }
  }
#endif

extension EtcdTransaction.Condition {
  /// The same, as the condition that a key is unchanged since it was read.
  package var comparing: Self {
    #if DEBUG
      if EtcdFault.changingBlindly.isActive { return always }
    #endif
    return self
  }

  /// The same, as the condition that its maker has not been replaced.
  package var fencing: Self {
    #if DEBUG
      if EtcdFault.forgettingFence.isActive { return always }
    #endif
    return self
  }

  #if DEBUG
    private var always: Self { .version(of: key, -1, is: .greater) }
  #endif
}
