#if DEBUG
  import Synchronization
  import Testing
  import WormholeSystem
  import WormholeTestSupport

  @testable import Wormhole

  @Suite("Entries of one file", .blocking)
  struct SettlingTests {
    /// Ends an entry just before a system call of another entry's end.
    private final class Interruption: Sendable {
      private let place: Int
      private let entry: Mutex<QueueEntry?>

      init(at place: Int, ending entry: QueueEntry) {
        self.place = place
        self.entry = Mutex(entry)
      }

      var hasHappened: Bool { entry.withLock { $0 == nil } }

      func plan() -> Faults.Plan {
        Faults.Plan { _, index in
          guard index == self.place, let entry = self.entry.withLock({ $0.take() }) else {
            return .proceed
          }
          do { try entry.acknowledge() } catch { Issue.record(error) }
          return .proceed
        }
      }
    }

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
        let interruption = Interruption(at: place, ending: last)
        try Faults.$plan.withValue(interruption.plan()) { try first.acknowledge() }
        guard interruption.hasHappened else { return }
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
        let interruption = Interruption(at: place, ending: first)
        try Faults.$plan.withValue(interruption.plan()) { try first.acknowledge() }
        try last.acknowledge()
        #expect(try scene.leftovers().isEmpty, "before call \(place): \(scene.directory.listing)")
        guard interruption.hasHappened else { return }
      }
      Issue.record("more than 40 calls")
    }
  }
#endif
