#if DEBUG
  import Synchronization
  import Testing
  import Wormhole
  import WormholePropertyLists
  import WormholeSystem
  import WormholeTestSupport

  /// Found by the torture program: a waiter that looked up the holder in the very moment in which
  /// another waiter took the lease over got "no such file or directory".
  ///
  /// ```
  /// holder            this process                 another waiter
  /// locks, is stopped
  ///                   flock: busy, opens held/
  ///                                                renames held/ away, removes it
  ///                   getdents64: ENOENT
  /// ```
  @Suite("A lease that is taken over while a waiter looks at it", .blocking)
  struct LeaseVanishingTests {
    /// Creates a plan in which the first look into the lease's directory finds it removed.
    private func removedAtFirstLook() -> Faults.Plan {
      let hasLooked = Atomic(false)
      return Faults.Plan { call, _ in
        guard call == .getdents64, !hasLooked.exchange(true, ordering: .relaxed) else {
          return .proceed
        }
        return .fail(.noSuchFile)
      }
    }

    private func heldByStoppedProcess(
      _ body: (PlainValue) throws -> Void
    ) throws {
      let directory = try TemporaryDirectory()
      let value = try directory.container().value("v")
      let holder = try Participant(directory.path)
      #expect(try holder.ask("hold v 1") == "holding")
      try holder.send(.stop)
      try holder.waitUntilStopped()
      try Faults.$plan.withValue(removedAtFirstLook()) { try body(value) }
    }

    @Test("is waited for again")
    func waits() throws {
      try heldByStoppedProcess { value in
        try value.replace(with: 2, until: .now + .seconds(30))
        #expect(try value.read() == 2)
      }
    }

    @Test("is a timeout if the deadline has passed")
    func timesOut() throws {
      try heldByStoppedProcess { value in
        let error = #expect(throws: WormholeError.self) {
          try value.replace(with: 2, until: .now - .seconds(1))
        }
        #expect(error?.code == .timedOut)
      }
    }
  }
#endif
