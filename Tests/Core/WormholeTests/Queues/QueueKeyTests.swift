import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeSystem

@Suite("An entry with a key", .blocking)
struct QueueKeyTests {
  let scene: QueueScene
  var queue: PlainQueue { scene.queue }

  init() throws { scene = try QueueScene() }

  @Test("replaces the waiting ones of its sender and key, and no others", .bothEngines)
  func superseding() async throws {
    let sender = try queue.sender("a")
    let first = try await sender.enqueue(0, key: "k", keepsReceipt: true)
    try await sender.enqueue(1)
    try await sender.enqueue(2, key: "l")
    try await queue.sender("a/k").enqueue(3, key: "")
    // Another process's, or after a restart.
    let second = try await queue.sender("a").enqueue(4, key: "k")
    let last = try await sender.enqueue(5, key: "k")
    #expect(try sender.status(of: first) == .superseded)
    #expect(try sender.receipts().map(\.payload) == [0])
    #expect(try sender.receipts().map(\.status) == [.superseded])
    #expect(try sender.outcomes().map(\.id) == [first, second])
    #expect(try sender.status(of: last) == .stored)
    #expect(
      try scene.drain() == [.init("a", 1), .init("a", 2), .init("a/k", 3), .init("a", 5)])
    if TestEngine.current == .directory {
      #expect(try scene.names("keys").isEmpty, "\(scene.directory.listing)")
    }
    #expect(try scene.leftovers().isEmpty, "\(scene.directory.listing)")
  }

  @Test("leaves taken entries alone, and the other entries of its file")
  func taken() throws {
    let sender = try queue.sender("a")
    try scene.sendTogether([0], from: "a", key: "k")
    let together = try scene.sendTogether([1, 2], from: "a", key: "k")
    try scene.sendTogether([3, 4], from: "a")
    let consumer = try queue.consume()
    let entry = try #require(try consumer.next(until: .now))
    #expect(entry.key == "k")
    try sender.enqueue(5, key: "k")
    #expect(try sender.status(of: entry.id) == .taken)
    #expect(try together.map(sender.status) == [.superseded, .superseded])
    #expect(try scene.drain(consumer).map(\.number) == [3, 4, 5])
    try entry.acknowledge()
    #expect(try scene.names("keys").isEmpty, "\(scene.directory.listing)")
    consumer.close()
    let key = try scene.sendTogether([6, 7], from: "a", key: "k")
    #expect(try sender.cancel(key[1]))
    try sender.enqueue(8, key: "k")
    #expect(try key.map(sender.status) == [.superseded, .cancelled])
    #expect(try scene.drain().map(\.number) == [8])
  }

  @Test("is the only one that waits, however many send at once", .bothEngines)
  func together() throws {
    let sender = try queue.sender("a")
    let group = DispatchGroup()
    for number in 0..<20 {
      Blocking.queue().async(group: group) {
        do { try sender.enqueue(PropertyListValue(number), key: "k") } catch { Issue.record(error) }
      }
    }
    group.wait()
    #expect(try scene.drain().count == 1)
    #expect(try sender.outcomes().map(\.status) == .init(repeating: .superseded, count: 19))
    if TestEngine.current == .directory {
      #expect(try scene.names("keys").isEmpty, "\(scene.directory.listing)")
    }
  }

  #if DEBUG
    @Test(
      "or its predecessor is delivered if its sender is killed before any of its steps",
      arguments: 0..<2)
    func killed(share: Int) throws {
      var results: Set<[Int]> = []
      try TriedSteps.each(from: share, by: 2) { step in
        let scene = try QueueScene()
        try scene.sendTogether([0], from: "a", key: "k")
        try scene.sendTogether([1, 2], from: "a")
        let wasKilled = try scene.participant().dies(of: "die \(step) queue-key q a k 3")
        // Neither of the two waits any more when the next one arrived.
        if step % 4 == share {
          try scene.queue.sender("a").enqueue(4, key: "k")
          #expect(try scene.drain().map(\.number) == [1, 2, 4], "\(step)")
        } else {
          let delivered = try scene.drain().map(\.number)
          results.insert(delivered)
          #expect(!Set(delivered).isDisjoint(with: [0, 3]), "\(step)")
          #expect(delivered == delivered.sorted() && Set(delivered).isSuperset(of: [1, 2]))
        }
        #expect(try scene.leftovers().isEmpty, "\(step): \(scene.directory.listing)")
        return wasKilled
      }
      #expect(results.isSuperset(of: [[0, 1, 2], [1, 2, 3]]), "\(results)")
    }

    // Its number is the older one from the step on that names it, and it is stored later.
    @Test(
      "waits alone, before whichever of its steps another process sends one under the same name",
      arguments: 0..<2)
    func stopped(share: Int) throws {
      try TriedSteps.each(from: share, by: 2) { step in
        let scene = try QueueScene()
        let late = try scene.participant()
        guard try late.stops(in: "stop \(step) queue-key q a k 0") else { return false }
        try scene.queue.sender("a").enqueue(1, key: "k")
        try late.send(.continue)
        #expect(try late.answer() == "done", "\(step)")
        let delivered = try scene.drain().map(\.number)
        #expect(delivered.count == 1, "\(step): \(delivered), \(scene.directory.listing)")
        #expect(try scene.leftovers().isEmpty, "\(step): \(scene.directory.listing)")
        return true
      }
    }
  #endif
}
