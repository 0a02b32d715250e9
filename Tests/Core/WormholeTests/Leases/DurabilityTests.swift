#if DEBUG
  import Synchronization
  import Testing
  import Wormhole
  import WormholePropertyLists
  import WormholeSystem
  import WormholeTestSupport

  @Suite("Durability", .blocking)
  struct DurabilityTests {
    /// The usual place, and one on another file system: on one of them a single fsync commits everything.
    static let places = [nil] + [TemporaryDirectory.elsewhere].filter { $0 != nil }

    @Test(
      "costs one fsync, or three, and two for the directories above when a name is new in them",
      arguments: places)
    func count(_ parent: String?) throws {
      let place = try TemporaryDirectory(under: parent)
      let container = try place.container()
      guard try !container.commitScope().isEverything else {
        for number in 1...3 {
          let value = container.value("seats \(number)")
          #expect(try fsyncs { try value.replace(with: 1, durability: .durable) } == 1)
          #expect(try fsyncs { try value.update(durability: .durable) { $0 = 2 } } == 1)
        }
        return
      }
      try container.value("seats").replace(with: 1)
      // Just created: another name could have been created in the same tick of the clock.
      #expect(
        try fsyncs { try container.value("seats").replace(with: 2, durability: .durable) } == 5)
      #expect(
        try fsyncs { try container.value("seats").replace(with: 3, durability: .durable) } == 5)
      try age(place.path + "/values")
      #expect(
        try fsyncs { try container.value("seats").replace(with: 4, durability: .durable) } == 5)
      #expect(
        try fsyncs { try container.value("seats").replace(with: 5, durability: .durable) } == 3)
      // A name that another process creates is noticed, too, through any handle of the container.
      try place.container().value("new").replace(with: 1)
      #expect(try fsyncs { try container.value("new").replace(with: 2, durability: .durable) } == 5)
      #expect(try place.container().value("new").read() == 2)
    }

    @Test("a change whose last fsync fails is reported, and is there", arguments: places)
    func failing(_ parent: String?) throws {
      let place = try TemporaryDirectory(under: parent)
      let value = try place.container().value("seats")
      try value.replace(with: 1, durability: .durable)
      let failing = Faults.Plan { call, _ in call == .fsync ? .fail(.inputOutput) : .proceed }
      let isAtOnce = try value.container.commitScope().isEverything
      let failure = #expect(throws: WormholeError.self) {
        try Faults.$plan.withValue(failing) { try value.replace(with: 2, durability: .durable) }
      }
      #expect(failure?.code == .inputOutput)
      #expect(try value.read() == (isAtOnce ? 2 : 1))
      let unwritten = Faults.Plan { call, _ in
        [.fsync, .syncFileRange].contains(call) ? .fail(.inputOutput) : .proceed
      }
      #expect(throws: WormholeError.self, "its content could not be written") {
        try Faults.$plan.withValue(unwritten) { try value.replace(with: 3, durability: .durable) }
      }
      #expect(try value.read() == (isAtOnce ? 2 : 1))
    }

    private func age(_ directory: String) throws {
      let open = try FileDescriptor.open(directory, [.readOnly, .directory])
      try open.setModified(seconds: realTime().seconds - 60, nanoseconds: 0)
    }

    private func fsyncs(_ body: () throws -> Void) rethrows -> Int {
      let count = Mutex(0)
      let plan = Faults.Plan { call, _ in
        if call == .fsync { count.withLock { $0 += 1 } }
        return .proceed
      }
      try Faults.$plan.withValue(plan, operation: body)
      return count.withLock { $0 }
    }
  }

  extension SharedContainer {
    /// What an fsync in it puts on the disk.
    func commitScope() throws -> CommitScope { try root.handle().commitScope() }
  }
#endif
