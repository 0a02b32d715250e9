#if DEBUG
  import AppGroup
  import PropertyLists
  import Synchronization
  import SystemCalls
  import TestScopes
  import TestSupport
  import Testing

  @Suite("Durability", .blocking)
  struct DurabilityTests {
    @Test("costs three fsyncs, and two for the directories above when a name is new in them")
    func count() throws {
      let place = try TemporaryDirectory()
      let container = try place.container()
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
#endif
