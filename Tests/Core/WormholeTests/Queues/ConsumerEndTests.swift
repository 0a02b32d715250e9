import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

/// What a consumer has taken when it ends, and not delivered.
@Suite("The end of a consumer", .blocking)
struct ConsumerEndTests {
  /// Takes everything; none of it may have been attempted before.
  private func expectUnattempted(_ count: Int, in scene: QueueScene, _ comment: Comment) throws {
    let successor = try scene.queue.work(attempts: 1)
    defer { successor.close() }
    var numbers: Set<Int?> = []
    while let entry = try successor.next(until: .now) {
      #expect(entry.attempt == 1, comment)
      numbers.insert(entry.payload.intValue)
      try entry.acknowledge()
    }
    let failures = try scene.queue.failures()
    #expect(numbers == Set(0..<count), "\(comment): \(failures)")
  }

  #if DEBUG
    // An entry failed without ever having run, if it may be attempted once.
    @Test(
      "counts no attempt of what it has taken and could not deliver for lack of descriptors",
      arguments: [1, 3])
    func failing(together: Int) throws {
      var place = 0
      while true {
        let scene = try QueueScene()
        try scene.sendTogether(Array(0..<together), from: "a")
        let worker = try scene.queue.work()
        let failing = Faults.Plan { [place] _, index in
          index >= place ? .fail(.tooManyOpenFiles) : .proceed
        }
        // Most fail.
        _ = try? Faults.$plan.withValue(failing) { try worker.next(until: .now) }
        worker.close()
        try expectUnattempted(together, in: scene, "call \(place) failed")
        guard failing.calls > place else { break }
        place += 1
      }
      #expect(place > 5)
    }

    /// ```
    /// one thread                    another thread
    /// takes, before call n
    ///                               closes
    /// goes on
    /// ```
    @Test("counts no attempt of what another thread is just taking", arguments: [1, 3])
    func closing(together: Int) throws {
      var place = 0
      while true {
        let scene = try QueueScene()
        try scene.sendTogether(Array(0..<together), from: "a")
        let worker = try scene.queue.work()
        let hasClosed = Atomic(false)
        let plan = Faults.Plan.acting(before: place) {
          DispatchQueue.global().async {
            worker.close()
            hasClosed.store(true, ordering: .sequentiallyConsistent)
          }
          try eventually("it is closed") {
            do { _ = try worker.isIdle() } catch WormholeError.Code.invalidToken { return true }
            return false
          }
        }
        // It may find that it is closed.
        _ = try? Faults.$plan.withValue(plan) { try worker.next(until: .now) }
        guard plan.calls > place else { break }
        try eventually("all is given back") { hasClosed.load(ordering: .sequentiallyConsistent) }
        try expectUnattempted(together, in: scene, "before call \(place)")
        place += 1
      }
      #expect(place > 5)
    }
  #endif

  @Test("that only removes what dead ones left counts no attempt of a waiting entry")
  func removing() throws {
    let scene = try QueueScene()
    try scene.queue.sender("a").enqueue(9)
    let victim = try scene.participant()
    #expect(try victim.ask("queue-join q") == "done")
    #expect(try victim.ask("queue-next q") == "a 9")
    try victim.end()
    let own = try #require(
      try scene.names("taken").first { try !scene.names("taken/" + $0).isEmpty })
    let batch = try #require(try scene.names("taken/" + own).first)
    try FileDescriptor.open("\(scene.place)/taken/\(own)/\(batch)", [.writeOnly, .truncate])
      .writeAll(Array("damaged".utf8))
    try scene.queue.sender("a").enqueue(0)
    _ = try scene.queue.endAbandoned(reason: "gone")
    try expectUnattempted(1, in: scene, "after a removal")
  }

  @Test("releases what was given back to it, and has no retry any more")
  func released() throws {
    let scene = try QueueScene()
    try scene.queue.sender("a").enqueue(0)
    weak var released: DeliveryTerms?
    do {
      let terms = DeliveryTerms(OpenQueue(scene.queue))
      released = terms
      let epoch = ConsumerEpoch(
        try scene.queue.store.joining(terms, until: soon).run(), terms)
      let entry = PlainEntry(try #require(try epoch.take(until: .now, .now).delivery))
      try entry.retry(after: .seconds(3_600), because: "again")
      #expect(epoch.nextRetry != nil)
      epoch.endLater()
      #expect(epoch.nextRetry == nil)
    }
    try eventually("it is released") { released == nil }
  }

  @Test("comes after its retries, in the order in which they are due")
  func order() throws {
    let scene = try QueueScene()
    let order = (0..<20).map { $0 * 7 % 20 }
    for number in order { try scene.queue.sender("a").enqueue(PropertyListValue(number)) }
    let consumer = try scene.queue.consume()
    let entries = try order.map { _ in try #require(try consumer.next(until: .now)) }
    for entry in entries {
      try entry.retry(after: .seconds((entry.payload.intValue ?? 0) - 100), because: "again")
    }
    #expect(try scene.drain(consumer).map(\.number) == Array(0..<20))
  }
}
