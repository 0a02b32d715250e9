#if DEBUG
  import Testing
  import WormholeSystem
  import WormholeTestSupport

  @testable import Wormhole

  @Suite("Entries of one file", .blocking)
  struct SettlingTests {
    // one thread                          another thread
    // ends the first entry, before call n
    //                                     ends the last entry, all of it
    // goes on
    @Test("may end at the same time: whichever comes last removes the file")
    func together() throws {
      for place in 0..<40 {
        let scene = try QueueScene()
        try scene.sendTogether([1, 2], from: "a")
        let consumer = try scene.queue.consume()
        let first = try #require(try consumer.next(until: .now))
        let last = try #require(try consumer.next(until: .now))
        let other = Faults.Plan.acting(before: place) { try last.acknowledge() }
        try Faults.$plan.withValue(other) { try first.acknowledge() }
        guard other.calls > place else { return }
        #expect(try consumer.isIdle(), "before call \(place)")
        #expect(try scene.leftovers().isEmpty, "before call \(place): \(scene.directory.listing)")
        consumer.close()
        #expect(try scene.drain().isEmpty)
      }
      Issue.record("more than 40 calls")
    }

    @Test("that another thread is ending already are left to it")
    func twice() throws {
      for place in 0..<40 {
        let scene = try QueueScene()
        try scene.sendTogether([1, 2], from: "a")
        let consumer = try scene.queue.consume()
        let first = try #require(try consumer.next(until: .now))
        let last = try #require(try consumer.next(until: .now))
        let other = Faults.Plan.acting(before: place) { try first.acknowledge() }
        try Faults.$plan.withValue(other) { try first.acknowledge() }
        try last.acknowledge()
        #expect(try scene.leftovers().isEmpty, "before call \(place): \(scene.directory.listing)")
        guard other.calls > place else { return }
      }
      Issue.record("more than 40 calls")
    }
  }
#endif
