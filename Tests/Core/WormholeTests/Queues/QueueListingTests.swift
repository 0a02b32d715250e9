import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole

@Suite("A queue shows what is in it, and gives it up", .blocking, .bothEngines)
struct QueueListingTests {
  private let scene: QueueScene
  private var queue: PlainQueue { scene.queue }

  init() throws { scene = try QueueScene() }

  @Test(
    "Taken entries come first, then those that wait in the order of delivery")
  func outstanding() throws {
    #expect(try queue.outstanding().isEmpty)
    let (a, b) = (try queue.sender("a"), try queue.sender("b"))
    let first = try a.enqueue(1)
    try b.enqueue(2)
    try a.enqueue(3, delay: .seconds(3_600))
    try b.enqueue(4)
    let consumer = try queue.consume()
    let taken = try #require(try consumer.next(until: .now))
    #expect(taken.id == first)
    try b.enqueue(5, key: "k")

    let found = try queue.outstanding()
    #expect(found.map(\.payload) == [1, 2, 4, 5, 3])
    #expect(found.map(\.status) == [.taken, .stored, .stored, .stored, .stored])
    #expect(found.map(\.key) == [nil, nil, nil, "k", nil])
    #expect(found[0].id == first)
    // The delivery goes on as if nobody had looked.
    try taken.acknowledge()
    consumer.close()
    #expect(try scene.drain() == [.init("b", 2), .init("b", 4), .init("b", 5)])
    #expect(try queue.outstanding().map(\.payload) == [3])
  }

  @Test("A limit saves the rest, and counts only what waits")
  func limit() throws {
    let sender = try queue.sender("a")
    for number in 0..<5 { try sender.enqueue(.integer(Int64(number))) }
    let consumer = try queue.consume()
    defer { consumer.close() }
    _ = try consumer.next(until: .now)
    #expect(try queue.outstanding(limit: 2).map(\.payload).prefix(3) == [0, 1, 2])
    if TestEngine.current == .directory {
      #expect(try queue.outstanding(limit: 2).count == 3)
    }
  }

  @Test("What was stored together is listed together, without what was settled or withdrawn")
  func together() throws {
    let ids = try scene.sendTogether([1, 2, 3], from: "a")
    #expect(try queue.sender("a").cancel(ids[1]))
    #expect(try queue.outstanding().map(\.payload) == [1, 3])
    let consumer = try queue.consume()
    defer { consumer.close() }
    try consumer.next(until: .now)?.acknowledge()
    #expect(try queue.outstanding().map(\.payload) == [3])
  }

  @Test("Giving everything up cancels what waits, and leaves what is taken")
  func cancelAll() throws {
    #expect(try queue.cancelAll() == 0)
    let sender = try queue.sender("a")
    let taken = try sender.enqueue(1)
    let consumer = try queue.consume()
    let entry = try #require(try consumer.next(until: .now))
    // More files than are withdrawn under one lease, and one with several entries.
    let others = try (0..<17).map { try sender.enqueue(.integer(Int64($0))) }
    let together = try scene.sendTogether([1, 2, 3], from: "b")
    let delayed = try sender.enqueue(2, delay: .seconds(3_600))
    #expect(try sender.cancel(others[0]))

    #expect(try queue.cancelAll() == 20)
    for id in others + together + [delayed] {
      #expect(try queue.sender(id.sender).status(of: id) == .cancelled)
    }
    #expect(try sender.status(of: taken) == .taken)
    try entry.acknowledge()
    #expect(try sender.status(of: taken) == .processed)
    consumer.close()
    #expect(try queue.cancelAll() == 0)
    #expect(try scene.drain().isEmpty)
  }
}
