#if DEBUG
  import Synchronization
  import Testing
  import WormholePropertyLists
  import WormholeSystem
  import WormholeTestSupport

  @testable import Wormhole

  /// The order is write, fsync(file), publish, fsync(directory), and both directories for a move
  /// between two. Until its directory is on the disk, a rename is lost with the power (fsync(2)). Where the
  /// fsync of a directory commits everything, the content is only written before.
  @Suite("A durable change", .blocking)
  struct DurableChangeTests {
    let scene: LeaseScene
    var value: PlainValue { scene.value }

    init() throws { scene = try LeaseScene() }

    /// Returns those of the given calls that a closure makes, in order. A write that the kernel cut
    /// short, and the one that continues it, are one.
    private func calls(_ kinds: [SystemCall], _ work: () throws -> Void) throws -> [SystemCall] {
      let made = Heard<SystemCall>()
      let recording = Faults.Plan { call, _ in
        let continues = call == .write && made.all.last == .write
        if kinds.contains(call), !continues { made.add(call) }
        return .proceed
      }
      try Faults.$plan.withValue(recording) { try work() }
      return made.all
    }

    private static let order: [SystemCall] = [.write, .syncFileRange, .fsync, .renameat2]

    @Test(
      "has its content on the disk before it is published, and its directories after",
      arguments: DurabilityTests.places)
    func order(_ parent: String?) throws {
      let place = try TemporaryDirectory(under: parent)
      let value = try place.container().value("k")
      // Keeps no version, which would be written before it goes.
      try value.replace(with: 0, durability: .durable)
      let isAtOnce = try value.container.commitScope().isEverything
      let above: [SystemCall] = [.fsync, .fsync]
      let published =
        isAtOnce
        ? [.write, .syncFileRange, .renameat2, .fsync]
        : above + [.write, .fsync, .renameat2, .fsync, .fsync]
      let replaced = try calls(Self.order) { try value.replace(with: 1, durability: .durable) }
      #expect(replaced == published)
      let updated = try calls(Self.order) { try value.update(durability: .durable) { $0 = 2 } }
      #expect(updated == published)
      try value.replace(with: 3)
      let isPrepared = try value.container.commitScope() != .everythingAtOnce
      #expect(
        try calls([.renameat, .renameat2]) { try value.replace(with: 4, durability: .durable) }
          == (isPrepared ? [.renameat] : []) + [.renameat, .renameat2],
        "what was kept goes before the new content comes")
      try value.replace(with: 5)
      #expect(
        try calls([.renameat, .fsync]) { try value.remove(durability: .durable) }
          == [.renameat, .renameat, .fsync] + (isAtOnce ? [] : [.fsync]),
        "what was kept goes before the value")
    }

    @Test("that is not durable waits for no disk")
    func standard() throws {
      #expect(try calls([.fsync]) { try value.replace(with: 1) } == [])
      #expect(try calls([.fsync]) { try value.update { $0 = 2 } } == [])
      #expect(try calls([.fsync]) { try value.remove() } == [])
    }

    @Test("and a large one are written before the lease is taken, so others do not wait for it")
    func preparedFirst() throws {
      let scene = scene
      let holders = Heard<[String]>()
      let looking = Faults.Plan { call, _ in
        guard call == .write else { return .proceed }
        Faults.$plan.withValue(nil) {
          do {
            holders.add(try scene.names(in: "held").filter { $0.hasPrefix("x-") })
          } catch {
            Issue.record(error)
          }
        }
        return .proceed
      }
      let large = PropertyListValue.string(
        String(repeating: "x", count: PreparedContent.worthwhileBytes))
      // Without a disk only a large one is.
      let isWithoutDisk = try value.container.commitScope() == .everythingAtOnce
      try Faults.$plan.withValue(looking) {
        try value.replace(with: large)
        if !isWithoutDisk { try value.replace(with: 1, durability: .durable) }
      }
      let all = holders.all
      #expect(all.count >= (isWithoutDisk ? 1 : 2))
      #expect(all.flatMap { $0 } == [])
    }

    @Test("that fails or gives up leaves nothing of its prepared content")
    func givesUp() throws {
      let full = Faults.Plan { call, _ in call == .write ? .fail(.noSpace) : .proceed }
      let failed = #expect(throws: WormholeError.self) {
        try Faults.$plan.withValue(full) { try value.replace(with: 1, durability: .durable) }
      }
      #expect(failed?.code == .noSpace)
      #expect(scene.litter == ["held"], "\(scene.directory.listing)")
      let holder = try scene.acquire(term: .seconds(600))
      let busy = #expect(throws: WormholeError.self) {
        try value.replace(with: 1, durability: .durable, until: .now - .seconds(1))
      }
      #expect(busy?.code == .timedOut)
      #expect(try !scene.names().contains { $0.hasPrefix("prepared-") })
      holder.end()
      #expect(try value.read() == 0)
    }

    // this process                       another
    // publishes 1
    //                                    takes the lease away, adds 10
    // fsyncs the directories
    @Test("is made once, even if its lease is taken over between publishing and the fsync")
    func madeOnce() throws {
      let value = value
      let hasPublished = Atomic(false)
      let wasOvertaken = Atomic(false)
      let overtaking = Faults.Plan { call, _ in
        if call == .renameat2 {
          hasPublished.store(true, ordering: .relaxed)
        } else if hasPublished.load(ordering: .relaxed),
          !wasOvertaken.exchange(true, ordering: .relaxed)
        {
          Faults.$plan.withValue(nil) {
            do {
              try value.update { $0 = .integer(($0?.int64Value ?? 0) + 10) }
            } catch {
              Issue.record(error)
            }
          }
        }
        return .proceed
      }
      try Faults.$plan.withValue(overtaking) {
        try value.update(durability: .durable, term: .milliseconds(1)) {
          $0 = .integer(($0?.int64Value ?? 0) + 1)
        }
      }
      let overtaken = wasOvertaken.load(ordering: .relaxed)
      #expect(overtaken)
      #expect(try value.read() == 11)
    }

    @Test("is prepared again after its lease was taken over, however late its writer was stopped")
    func preparedAgain() throws {
      // From here on no kept version is to be dropped, so each change makes as many calls.
      try value.replace(with: 1, durability: .durable)
      let calls = try Participant(scene.directory.path).calls(of: "durable k 5")
      for place in (calls - 14)..<calls {
        let late = try Participant(scene.directory.path)
        try late.tell("stop \(place) durable k 5")
        try late.waitUntilStopped()
        try value.replace(with: 100)
        try late.send(.continue)
        #expect(try late.answer() == "done", "stopped before call \(place)")
        #expect(try [5, 100].contains(value.read()))
      }
      #expect(scene.litter == ["held"], "\(scene.directory.listing)")
    }
  }
#endif
