import Synchronization
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

#if DEBUG
  @Suite("A queue, whichever call the kernel refuses,", .blocking)
  struct QueueFailureTests {
    private func failing(_ step: Int, _ error: Errno) -> Faults.Plan {
      Faults.Plan { _, index in index == step ? .fail(error) : .proceed }
    }

    @Test("ends within its time what consumers have left, also if others take what waits each time")
    func endlessRace() throws {
      let scene = try QueueScene()
      let sender = try scene.queue.sender("a")
      for number in 0..<3 { try sender.enqueue(PropertyListValue(number)) }
      let workers = try (0..<2).map { _ in try scene.queue.work() }
      for worker in workers { _ = try worker.next(until: soon) }
      for worker in workers { worker.close() }
      let moves = Mutex(0)
      let deadline = ContinuousClock.now + .seconds(3)
      let plan = Faults.Plan { call, index in
        guard call == .renameat, index < 200_000 else { return .proceed }
        let number = moves.withLock { moves in
          moves += 1
          return moves
        }
        // The last of them is late: the machine may be slow, but the time is over then.
        if number > 9 { pauseThread(max(deadline - .now, .zero)) }
        // It takes over from one of the workers by the first one, gives back what the other had by the second,
        // and becomes a consumer by the third.
        return number <= 3 ? .proceed : .fail(.noSuchFile)
      }
      let ended = try Faults.$plan.withValue(plan) {
        try scene.queue.endAbandoned(reason: "too late", until: deadline)
      }
      #expect(ended == 1 && plan.calls < 200_000 && moves.withLock { $0 } > 9)
      #expect(try scene.queue.endAbandoned(reason: "on purpose") == 1)
    }

    @Test(
      "has an entry completely or not at all, leaves nothing behind, and takes the next",
      arguments: [0, 1])
    func sending(before: Int) throws {
      var failures = 0
      let refused = Mutex<Set<SystemCall>>([])
      try TriedSteps.each(from: 0, by: 1) { step in
        let scene = try QueueScene()
        let sender = try scene.queue.sender("a")
        for number in 0..<before { try sender.enqueue(PropertyListValue(number)) }
        let plan = Faults.Plan { [step] call, index in
          guard index == step else { return .proceed }
          refused.withLock { _ = $0.insert(call) }
          return .fail(.noSpace)
        }
        var failed = false
        do {
          try Faults.$plan.withValue(plan) { _ = try sender.enqueue(7, durability: .durable) }
        } catch let error as WormholeError {
          #expect(error.code == .noSpace, "call \(step): \(error)")
          failed = true
          failures += 1
        }
        // Only after a failure of the last fsyncs the entry exists all the same.
        let place = try scene.queue.openOrMake()
        let stored = try place.batches(QueueDirectory.pending) ?? []
        let isStored = stored.count > before
        #expect(failed || isStored, "call \(step)")
        try sender.enqueue(8)
        let expected = Array(0..<before) + (isStored ? [7] : []) + [8]
        #expect(try scene.drain().map(\.number) == expected, "call \(step)")
        #expect(try scene.leftovers().isEmpty, "call \(step): \(scene.directory.listing)")
        return plan.calls > step
      }
      // What every entry needs, on each file system.
      #expect(refused.withLock { $0 }.isSuperset(of: [.openat, .write, .renameat2, .fsync]))
      // Where one fsync is enough, there are fewer calls to refuse.
      let scene = try QueueScene()
      let commitsTogether = try scene.queue.openOrMake().commitScope().isEverything
      #expect(commitsTogether || failures > 8)
    }

    @Test(
      "puts an entry aside that the disk does not give, and delivers the next", arguments: [2, 3])
    func disk(errors: Int) throws {
      let scene = try QueueScene()
      try scene.queue.sender("a").enqueue(0)
      try scene.queue.sender("b").enqueue(1)
      let consumer = try scene.queue.consume()
      let left = Mutex(errors)
      let plan = Faults.Plan { call, _ in
        guard call == .read else { return .proceed }
        return left.withLock { left in
          defer { left = max(0, left - 1) }
          return left > 0 ? .fail(.inputOutput) : .proceed
        }
      }
      let entry = try Faults.$plan.withValue(plan) { try consumer.next(until: .now) }
      #expect(entry?.payload == (errors < 3 ? 0 : 1))
      #expect(try scene.queue.container.report().quarantine.count == (errors < 3 ? 0 : 1))
      consumer.close()
    }

    @Test("loses no entry that a consumer has taken or could not take")
    func consuming() throws {
      var failures = 0
      try TriedSteps.each(from: 0, by: 1) { step in
        let scene = try QueueScene()
        try scene.sendTogether([0, 1], from: "a")
        try scene.sendTogether([2], from: "a")
        let consumer = try scene.queue.consume()
        let plan = failing(step, .inputOutput)
        var entries: [PlainEntry] = []
        do {
          try Faults.$plan.withValue(plan) {
            while let entry = try consumer.next(until: .now) {
              entries.append(entry)
              try entry.acknowledge()
            }
          }
        } catch is WormholeError {
          failures += 1
        }
        // Again, for the one whose acknowledgement failed; it does not harm the others.
        for entry in entries { try entry.acknowledge() }
        checkDeliveries(
          entries.map { .init($0) } + (try scene.drain(consumer)), of: ["a": [0, 1, 2]],
          "call \(step)")
        consumer.close()
        #expect(try scene.drain().isEmpty)
        #expect(try scene.leftovers().isEmpty, "call \(step): \(scene.directory.listing)")
        return plan.calls > step
      }
      #expect(failures > 8)
    }

    @Test("flushes a durable entry to the disk, and nothing twice")
    func durable() throws {
      let scene = try QueueScene()
      let sender = try scene.queue.sender("a")
      try sender.enqueue(0, durability: .durable)
      let calls = Mutex<[SystemCall]>([])
      let plan = Faults.Plan { call, _ in
        calls.withLock { $0.append(call) }
        return .proceed
      }
      try Faults.$plan.withValue(plan) { _ = try sender.enqueue(1, durability: .durable) }
      let order = calls.withLock { $0 }.filter { [.write, .fsync, .renameat2].contains($0) }
      let scope = try scene.queue.openOrMake().commitScope()
      let isFirst = scope == .content
      // Its file before it is visible, or once, together with its name.
      #expect(
        order.prefix(3) == (isFirst ? [.write, .fsync, .renameat2] : [.write, .renameat2, .fsync]))
      // Then its name; and as long as they are new, the directories above.
      let rest = order.dropFirst(3)
      #expect(rest.allSatisfy { $0 == .fsync })
      #expect(scope.isEverything ? rest.isEmpty : rest.count >= (isFirst ? 2 : 1))
    }

    @Test("stores no entry whose fsync has failed, and keeps no receipt of it")
    func unflushed() throws {
      let scene = try QueueScene()
      let sender = try scene.queue.sender("a")
      try sender.enqueue(0)
      let plan = Faults.Plan { call, _ in call == .fsync ? .fail(.inputOutput) : .proceed }
      #expect(throws: WormholeError.self) {
        try Faults.$plan.withValue(plan) {
          _ = try sender.enqueue(1, durability: .durable, keepsReceipt: true)
        }
      }
      #expect(try sender.receipts().isEmpty)
      #expect(try scene.drain().map(\.number) == [0])
      #expect(try scene.leftovers().isEmpty)
    }
  }
#endif
