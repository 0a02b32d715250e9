#if DEBUG
  import Synchronization
  import Testing
  import WormholePropertyLists
  import WormholeSystem
  import WormholeTestSupport

  @testable import Wormhole

  /// Two processes that take over a lease at once, played in one: before a system call of the
  /// first, the second acts. Rules 4 to 6 of RulesOfTheLease.md.
  @Suite("A lease that is taken over, step by step", .blocking)
  struct LeaseInterleavingTests {
    let scene: LeaseScene
    var value: PlainValue { scene.value }

    init() throws { scene = try LeaseScene() }

    /// Creates a plan that acts before certain calls, as another process would.
    private func plan(
      _ meddle: @escaping @Sendable (SystemCall, Int) throws -> Void
    ) -> Faults.Plan {
      Faults.Plan { call, index in
        Faults.$plan.withValue(nil) {
          do {
            try meddle(call, index)
          } catch {
            Issue.record(error)
          }
        }
        return .proceed
      }
    }

    /// Returns whether another process than the late holder holds the current lease.
    private static func isHeld(_ scene: LeaseScene, butBy late: String) throws -> Bool {
      do throws(Errno) {
        let held = try FileDescriptor.open(scene.lease + "/held", [.readOnly, .directory])
        let names = try held.entries().map(\.name.text)
        guard !names.contains(late) else { return false }
        return try !held.tryLock(.exclusive)
      } catch {
        guard error == .noSuchFile else { throw error }
        return false
      }
    }

    @Test("is so by two at once, before whichever step the second acts")
    func twoBreakers() throws {
      let (scene, value) = (scene, value)
      var place = 0
      var wasReached = true
      while wasReached {
        let late = try scene.acquire(term: .milliseconds(1))
        let name = try #require(try scene.names(in: "held").first { $0.hasPrefix("x-") })
        let reached = Atomic(false)
        let isLast = Atomic(false)
        let current = place
        let steps = Atomic(0)
        let plan = plan { call, _ in
          // The calls that examine or change the lease's directories; the others are many.
          let kinds: [SystemCall] = [
            .openat, .openat2, .getdents64, .renameat, .renameat2, .unlinkat, .mkdirat,
          ]
          guard kinds.contains(call),
            steps.add(1, ordering: .relaxed).oldValue == current
          else { return }
          reached.store(true, ordering: .relaxed)
          guard try !Self.isHeld(scene, butBy: name) else { return }
          isLast.store(try value.read() == 200, ordering: .relaxed)
          try value.replace(with: 100)
        }
        try Faults.$plan.withValue(plan) { try value.replace(with: 200) }
        wasReached = reached.load(ordering: .relaxed)
        let last: PropertyListValue = isLast.load(ordering: .relaxed) ? 100 : 200
        #expect(try value.read() == last, "at call \(place)")
        #expect(throws: WormholeError.self) { try late.confirm() }
        late.end()
        // Sweeps the entries that one of them met while the other had announced them.
        try value.replace(with: 0, durability: .durable)
        #expect(scene.litter == ["held"], "at call \(place): \(scene.directory.listing)")
        place += 1
      }
      #expect(place > 15)
    }

    @Test("is removed however often its late holder makes one more entry in it (rule 4)")
    func lateEntries() throws {
      let late = try scene.acquire(term: .milliseconds(1))
      let scene = scene
      let entries = Atomic(0)
      let plan = plan { call, _ in
        guard call == .unlinkat, entries.load(ordering: .relaxed) < 6,
          let broken = try scene.names().first(where: { $0.hasPrefix("broken-") }),
          try scene.names(in: broken).isEmpty
        else { return }
        // The last call for an empty directory is the one that removes it.
        try scene.make(broken + "/late-\(entries.add(1, ordering: .relaxed).newValue)")
      }
      try Faults.$plan.withValue(plan) { try value.replace(with: 1) }
      let made = entries.load(ordering: .relaxed)
      #expect(made == 6)
      #expect(scene.litter == ["held"], "\(scene.directory.listing)")
      #expect(throws: WormholeError.self) { try late.confirm() }
    }

    @Test("may be marked clean by another process meanwhile (rule 5)")
    func markedMeanwhile() throws {
      try scene.removeMark()
      let scene = scene
      let hasLooked = Atomic(false)
      let plan = plan { call, _ in
        if call == .getdents64 { return hasLooked.store(true, ordering: .relaxed) }
        guard call == .openat, hasLooked.load(ordering: .relaxed),
          try !scene.names(in: "held").contains("clean")
        else { return }
        try scene.make("held/clean")
      }
      try Faults.$plan.withValue(plan) { try scene.acquire().end() }
      #expect(scene.litter == ["held"])
    }

    private static func isBeingRemoved(_ scene: LeaseScene) -> Bool {
      Faults.$plan.withValue(nil) {
        do {
          return try scene.names().contains { $0.hasPrefix("broken-") }
        } catch {
          Issue.record(error)
          return false
        }
      }
    }

    @Test("may be renamed by a process that is stopped there, just before another one would")
    func quickerBreaker() throws {
      let late = try scene.acquire(term: .milliseconds(1))
      let scene = scene
      let hasMoved = Atomic(false)
      let plan = plan { call, _ in
        // The first rename takes the lease over.
        guard call == .renameat, !hasMoved.exchange(true, ordering: .relaxed) else { return }
        try scene.move("held", to: "broken-b")
      }
      try Faults.$plan.withValue(plan) { try value.replace(with: 1) }
      let wasQuicker = hasMoved.load(ordering: .relaxed)
      #expect(wasQuicker)
      #expect(try value.read() == 1)
      #expect(throws: WormholeError.self) { try late.confirm() }
      late.end()
      #expect(scene.litter == ["held"], "\(scene.directory.listing)")
    }

    @Test("is so on a full disk as well, because the note about the taker is optional")
    func fullDisk() throws {
      let late = try scene.acquire(term: .milliseconds(1))
      let scene = scene
      let wasFull = Atomic(false)
      let full = Faults.Plan { call, _ in
        // The note is written while the lease that was taken over still exists.
        guard call == .write, Self.isBeingRemoved(scene),
          !wasFull.exchange(true, ordering: .relaxed)
        else { return .proceed }
        return .fail(.noSpace)
      }
      try Faults.$plan.withValue(full) { try value.replace(with: 1) }
      let hadNoSpace = wasFull.load(ordering: .relaxed)
      #expect(hadNoSpace)
      #expect(try value.read() == 1)
      #expect(throws: WormholeError.self) { try late.confirm() }
      late.end()
      #expect(scene.litter == ["held"], "\(scene.directory.listing)")
    }

    @Test("without an exchange in the file system, plain renames publish (rule 6)")
    func plainRename() throws {
      let directory = try TemporaryDirectory()
      let old = Faults.Plan { call, _ in
        call == .renameat2 ? .fail(.invalidArgument) : .proceed
      }
      try Faults.$plan.withValue(old) {
        let value = try directory.container().value("k")
        for number in 1...3 { try value.replace(with: PropertyListValue(number)) }
        try value.update { $0 = .integer(($0?.int64Value ?? 0) + 10) }
        #expect(try value.read() == 13)
        try value.replace(with: 5, durability: .durable)
        #expect(try value.read() == 5)
        #expect(try value.remove())
        #expect(try value.read() == nil)
      }
      #expect(Litter.entries(of: "k", in: directory) == ["held"], "\(directory.listing)")
    }
  }
#endif
