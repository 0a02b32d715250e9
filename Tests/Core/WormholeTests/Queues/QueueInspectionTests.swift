import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A look at a container's queues", .blocking)
struct QueueInspectionTests {
  let scene: QueueScene
  var container: SharedContainer { scene.queue.container }

  init() throws { scene = try QueueScene() }

  @Test("reports the waiting entries, the consumer, and the outcomes that senders have not cleared")
  func report() throws {
    #expect(try container.report().names.queues.isEmpty)
    let sender = try scene.queue.sender("a")
    try sender.enqueue(0, keepsReceipt: true)
    try scene.sendTogether([1, 2, 3], from: "a")
    try sender.cancel(sender.enqueue(4))
    let first = try #require(try container.report().names.queues.first)
    #expect(first.name == "q" && first.path == scene.place)
    #expect(first.waiting == 4 && first.taken == 0 && first.consumer == nil)
    #expect(first.waitingBytes > 0 && first.oldest != nil)
    #expect(first.outcomes == 1 && first.receipts == 1)
    let consumer = try scene.queue.consume()
    let entry = try #require(try consumer.next(until: .now))
    let second = try #require(try container.report().names.queues.first)
    #expect(second.waiting == 3 && second.taken == 1)
    #expect(second.consumer?.processID == ProcessIdentity.current.processID)
    try entry.acknowledge()
    #expect(try scene.drain(consumer).count == 3)
    consumer.close()
    let last = try #require(try container.report().names.queues.first)
    #expect(last.waiting == 0 && last.oldest == nil && last.consumer == nil)
    let report = try container.report()
    #expect(report.leftovers.isEmpty && report.failures.isEmpty && report.foreignEntries.isEmpty)
  }

  @Test("finds and sweeps the entries of dead senders, and leaves unfinished ones alone")
  func sweep() throws {
    let sender = try scene.queue.sender("a")
    let marked = try sender.enqueue(0, key: "k")
    let place = try scene.queue.openOrMake()
    func plant(_ path: String) throws -> String {
      try FileDescriptor.open(scene.place + "/" + path, [.writeOnly, .create]).close()
      return scene.place + "/" + path
    }
    let marks = QueueDirectory.marksPath("a", "k")
    let gone = EntryFile(order: 1, sender: "a", count: 2, bytes: 3).text
    try makeDirectory(scene.place + "/sent")
    let planted = try [
      plant("staged/dead"), plant("sent/\(gone).forgotten"), plant("\(marks)/\(gone).0"),
    ]
    let written = try place.createFile("staged/living")
    #expect(try written.tryLock(.exclusive))
    let report = try container.report()
    #expect(Set(report.leftovers.map(\.path)) == Set(planted))
    #expect(report.leftovers.allSatisfy { $0.kind == .abandonedEntry })
    let swept = try container.sweep()
    #expect(swept.failures.isEmpty && Set(swept.removed) == Set(planted))
    #expect(try container.report().leftovers.isEmpty, "\(scene.directory.listing)")
    #expect(try scene.names("staged") == ["living"])
    #expect(try place.exists("\(marks)/\(marked.batch.text).0"))
    #expect(try scene.drain() == [.init("a", 0)])
  }

  @Test("tolerates any entry in them, and reports foreign ones")
  func hostile() throws {
    try scene.queue.sender("a").enqueue(0)
    for part in ["pending/x", "outcomes/y", "staged/z"] {
      _ = try FileDescriptor.open(scene.place + "/" + part, [.writeOnly, .create])
    }
    try makeDirectory(scene.place + "/pending/00000000000000ff-a-1-2.plist")
    try makeDirectory(scene.place + "/keys")
    try FileDescriptor.open(scene.place + "/keys/k", [.writeOnly, .create]).close()
    try makeDirectory(scene.place + "/sent")
    try makeDirectory(scene.place + "/sent/x.plist.forgotten")
    let report = try container.report()
    #expect(
      Set(report.foreignEntries.map(\.path)).isSuperset(
        of: ["pending/x", "outcomes/y", "keys/k"].map { scene.place + "/" + $0 }))
    _ = try container.sweep()
    #expect(try container.report().names.queues.count == 1)
  }

  @Test("lists one after another what it lists as a whole, and what cannot be read")
  func list() throws {
    try scene.queue.sender("a").enqueue(0, delay: .seconds(60))
    try scene.sendTogether([1, 2, 3], from: "b")
    for number in 4..<7 { try scene.queue.sender("a").enqueue(.integer(Int64(number))) }
    let consumer = try scene.queue.consume()
    for _ in 0..<2 { #expect(try consumer.next(until: .now) != nil) }
    let damaged = EntryFile(order: 1, sender: "c", count: 1, bytes: 3)
    try FileDescriptor.open(scene.place + "/pending/" + damaged.text, [.writeOnly, .create])
      .writeAll(Array("abc".utf8))
    var found: [QueueReceipt] = []
    let unreadable = try scene.queue.forEachListed { found.append($0) }
    let whole = try scene.queue.listed()
    #expect(found.map(\.id) == whole.map(\.id) && found.map(\.status) == whole.map(\.status))
    #expect(found.count == 7 && found.filter { $0.status == .taken }.count == 3)
    #expect(unreadable.map(\.id.batch) == [damaged])
    withExtendedLifetime(consumer) {}
  }

  // A list that had read the names of what waits before a consumer took one showed that twice, or not.
  @Test("lists each entry once, although a consumer takes it meanwhile")
  func listWhileTaken() throws {
    for number in 0..<5 { try scene.queue.sender("a").enqueue(.integer(Int64(number))) }
    let consumer = try scene.queue.consume()
    let first = try #require(try consumer.next(until: .now))
    var (found, second): ([Int64?], PlainEntry?) = ([], nil)
    _ = try scene.queue.forEachListed { entry in
      found.append(entry.payload.int64Value)
      guard found.count == 1 else { return }
      // Listed as taken; and as waiting.
      try first.acknowledge()
      second = try consumer.next(until: .now)
    }
    #expect(found == [0, 1, 2, 3, 4])
    #expect(second?.payload == 1)
    consumer.close()
  }
}
