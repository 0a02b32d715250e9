import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

/// FUSE without `RENAME_NOREPLACE` and `RENAME_EXCHANGE`, as NFS is, too (renameat2(2)).
@Suite(
  "On a file system whose renames only replace", .blocking, .enabled(if: Mirror.isPossible))
struct RenameInStepsTests {
  let mirror: Mirror
  let container: SharedContainer
  let queue: PlainQueue

  init() throws {
    mirror = try Mirror()
    container = try SharedContainer(path: mirror.seenPath)
    queue = container.queue("q")
  }

  private func participants(_ count: Int) throws -> [Participant] {
    try (0..<count).map { _ in try Participant(mirror.seenPath) }
  }

  private func log(_ name: String) -> String { mirror.outside + "/" + name }

  private func lines(_ names: [String]) throws -> [String] {
    try names.flatMap { name in
      // A worker that got nothing has noted nothing.
      guard FileManager.default.fileExists(atPath: log(name)) else { return [String]() }
      return try String(contentsOfFile: log(name), encoding: .utf8).split(separator: "\n").map(
        String.init)
    }
  }

  // ```
  // senders A, B                workers C, D
  // 40 entries each             each takes what it gets, and notes it
  // ```
  @Test("each entry of a queue is delivered once, whichever of several processes sends and takes")
  func racing() throws {
    let senders = try participants(2)
    let workers = try participants(2)
    for (index, worker) in workers.enumerated() {
      try worker.tell("queue-share q \(log("worker\(index)")) 2")
    }
    for (index, sender) in senders.enumerated() {
      try sender.tell("queue-send q sender\(index) 0 40 \(log("sent\(index)"))")
    }
    for process in senders + workers { #expect(try process.answer() == "done") }
    let expected = (0..<2).flatMap { sender in (0..<40).map { "sender\(sender) \($0)" } }
    let found = try lines(["worker0", "worker1"])
    #expect(found.sorted() == expected.sorted(), "\(found)")
  }

  // Where a move takes two steps, both processes could give the entry a name of their own.
  @Test("a kept entry that two processes send again at once is stored once")
  func sentAgain() throws {
    let processes = try participants(3)
    for round in 0..<20 {
      let consumer = try queue.consume(until: .now + .seconds(5))
      try queue.sender("phone").enqueue(PropertyListValue(round))
      let entry = try #require(try consumer.next(until: .now + .seconds(5)))
      try entry.fail("on purpose", isKept: true)
      for process in processes { try process.tell("queue-retry q") }
      for process in processes { #expect(try process.answer() == "done") }
      var found: [PropertyListValue] = []
      while let entry = try consumer.next(until: .now) {
        found.append(entry.payload)
        try entry.acknowledge()
      }
      #expect(found == [PropertyListValue(round)], "round \(round)")
      #expect(try queue.failures().isEmpty)
      consumer.close()
    }
  }

  @Test("an entry has its receipt; its cancellation is refused with what the file system lacks")
  func receipts() throws {
    let sender = try queue.sender("phone")
    let id = try sender.enqueue(1, keepsReceipt: true)
    #expect(try sender.status(of: id) == .stored)
    let error = try #require(throws: WormholeError.self) { try sender.cancel(id) }
    #expect("\(error)".contains("RENAME_EXCHANGE"), "\(error)")
    let consumer = try queue.consume(until: .now + .seconds(5))
    try #require(try consumer.next(until: .now + .seconds(5))).acknowledge()
    #expect(try sender.status(of: id) == .processed)
    consumer.close()
  }

  @Test("a sender that dies at any step has stored its entry, which is delivered once, or has not")
  func crash() throws {
    let steps = try participants(1)[0].calls(of: "queue-keep q sender 0")
    var stored = 0
    for step in 0..<steps {
      let sender = try participants(1)[0]
      #expect(try sender.dies(of: "die \(step) queue-keep q sender \(step + 1)"), "step \(step)")
      let consumer = try queue.consume(until: .now + .seconds(5))
      var found: [Int?] = []
      while let entry = try consumer.next(until: .now) {
        found.append(entry.payload.intValue)
        try entry.acknowledge()
      }
      found.removeAll { $0 == 0 }
      #expect(found.isEmpty || found == [step + 1], "step \(step)")
      stored += found.count
      consumer.close()
      let staged = try FileDescriptor.open(mirror.realPath + "/queues/q/staged", .readOnly)
      #expect(try staged.entries().isEmpty, "step \(step)")
    }
    #expect(stored > 1 && stored < steps, "\(stored) of \(steps)")
  }
}
