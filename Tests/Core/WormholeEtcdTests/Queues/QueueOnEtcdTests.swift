import FoundationEssentials
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

@Suite(
  "A queue on etcd", .blocking, .needsEtcd)
struct QueueOnEtcdTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func queue(through endpoint: String? = nil) throws -> PlainQueue {
    var location = try #require(try TestEngine.etcd.location(of: directory.path))
    if let endpoint { location.endpoints = [endpoint] }
    // The machine may be busy with other tests.
    location.lifetime = .seconds(60)
    return try SharedContainer(etcd: location, companion: directory.path).queue("q")
  }

  private func keys(_ part: QueueKeyPart, of queue: PlainQueue) throws -> [String] {
    let keys = try #require(queue.store as? EtcdQueue)
    return try keys.client.read(keys.range(part), keysOnly: true, until: soon).items
      .map { String(decoding: $0.key, as: UTF8.self) }
  }

  @Test("has the present time of sending again after a sender's clock was ahead")
  func clockAhead() throws {
    let queue = try queue()
    let ahead: UInt64 = 2 * 86_400 * 1_000_000_000
    let early = PlainQueue(container: queue.container, name: "q") {
      PlainQueue.nanosecondsSince1970() + ahead
    }
    let first = try early.sender("a").enqueue(1)
    // It comes after that one, which waits.
    #expect(try queue.sender("a").enqueue(2).batch.order > first.batch.order)
    let consumer = try queue.consume()
    for number in 1...2 {
      let entry = try #require(try consumer.next(until: .now))
      #expect(entry.payload == PropertyListValue(number))
      try entry.acknowledge()
    }
    let order = try queue.sender("a").enqueue(3).batch.order
    #expect(order < PlainQueue.nanosecondsSince1970() + ahead / 2)
    // A foreign record of the largest number.
    let keys = try #require(queue.store as? EtcdQueue)
    try keys.client.put(keys.key(.senders, "a"), Array("n fffffffffffffff0".utf8), until: soon)
    let delayed = try queue.sender("a").enqueue(4, delay: .seconds(3_600))
    #expect(delayed.due.map { $0.timeIntervalSinceNow < 7_200 } == true)
  }

  @Test("shares batches among its workers, each entry once, if one answer in seven is lost")
  func sharedWithLostAnswers() throws {
    let proxy = try LossyProxy(to: EtcdNode.shared.get().endpoint, losingOneIn: 7)
    let (direct, lossy) = (try queue(), try queue(through: proxy.endpoint))
    var sent = 0
    for _ in 0..<6 {
      let submissions = (sent..<sent + 12).map { number in
        Submission(.init(payload: PropertyListValue(number)), durability: .standard) { _ in }
      }
      try direct.sender("a").submissions.write(submissions)
      sent += 12
    }
    let workers = [try lossy.work(), try lossy.work(), try direct.work()]
    var delivered: [Int] = []
    var number = 0
    while delivered.count < sent {
      guard let entry = try workers[number % 3].next(until: soon) else { break }
      #expect(!entry.isRedelivery)
      delivered.append(entry.payload.intValue ?? -1)
      try entry.acknowledge()
      number += 1
    }
    #expect(proxy.lost > 10)
    #expect(delivered.sorted() == Array(0..<sent), "\(delivered)")
    #expect(try keys(.entries, of: direct) == [] && keys(.owners, of: direct) == [])
    #expect(try keys(.outcomes, of: direct) == [])
  }

  /// Stores a batch as it may come from a directory.
  private func copied(_ entries: [Batch.Entry], to queue: PlainQueue) throws -> EntryFile {
    let keys = try #require(queue.store as? EtcdQueue)
    let bytes = try Batch(entries).bytes()
    let name = EntryFile(
      order: PlainQueue.nanosecondsSince1970(), sender: "a", count: entries.count,
      bytes: bytes.count)
    try keys.client.put(keys.entryKey(name), bytes, until: soon)
    return name
  }

  @Test("keeps the marks of keys whose entries workers share")
  func sharedMarks() throws {
    let queue = try queue()
    let keys = try #require(queue.store as? EtcdQueue)
    let batch = try copied([.init(payload: 0), .init(payload: 1, key: "k")], to: queue)
    let second = QueueEntryID(batch: batch, index: 1)
    try keys.client.put(keys.markKey("a", "k"), Array("\(batch.text).1".utf8), until: soon)
    let worker = try queue.work()
    let entry = try #require(try worker.next(until: .now))
    try keys.sweep()
    try queue.sender("a").enqueue(2, key: "k")
    #expect(try queue.sender("a").status(of: second) == .superseded)
    try entry.acknowledge()
    #expect(try worker.next(until: .now)?.payload == 2)
  }

  @Test("gives a worker the whole of a batch with too many entries for one step")
  func large() throws {
    let queue = try queue()
    _ = try copied((0..<200).map { .init(payload: PropertyListValue($0)) }, to: queue)
    let worker = try queue.work()
    for number in 0..<200 {
      let entry = try #require(try worker.next(until: .now))
      #expect(entry.payload == PropertyListValue(number) && !entry.isRedelivery)
      try entry.acknowledge()
    }
    #expect(try worker.next(until: .now) == nil)
  }

  @Test("keeps shared entries before all that arrived later, whatever the senders' clocks say")
  func sharedAhead() throws {
    let queue = try queue()
    let ahead = PlainQueue(container: queue.container, name: "q") {
      PlainQueue.nanosecondsSince1970() + 86_400 * 1_000_000_000
    }
    let submissions = (0..<3).map { number in
      Submission(.init(payload: PropertyListValue(number)), durability: .standard) { _ in }
    }
    try ahead.sender("a").submissions.write(submissions)
    try queue.sender("b").enqueue(3)
    let worker = try queue.work()
    for number in 0..<4 {
      let entry = try #require(try worker.next(until: .now))
      #expect(entry.payload == PropertyListValue(number))
      try entry.acknowledge()
    }
  }

  @Test("cancels the waiting entries of a batch that workers have shared since it was listed")
  func cancelledWhileShared() throws {
    let queue = try queue()
    let keys = try #require(queue.store as? EtcdQueue)
    let submissions = (0..<4).map { number in
      Submission(.init(payload: PropertyListValue(number)), durability: .standard) { _ in }
    }
    try queue.sender("a").submissions.write(submissions)
    let worker = try queue.work()
    let entry = try #require(try worker.next(until: .now))
    #expect(try keys.cancelAll(of: entry.id.batch) == 3)
    #expect(try queue.sender("a").status(of: entry.id) == .taken)
    try entry.acknowledge()
    #expect(try worker.next(until: .now) == nil)
  }

  @Test("delivers each entry once and in order if one answer in nineteen is lost")
  func lostAnswers() throws {
    // An odd number: taking and ending alternate.
    let proxy = try LossyProxy(to: EtcdNode.shared.get().endpoint, losingOneIn: 19)
    let queue = try queue(through: proxy.endpoint)
    let sender = try queue.sender("a")
    let count = 120
    let ids = try (0..<count).map { number in
      try sender.enqueue(PropertyListValue(number), keepsReceipt: number % 10 == 0)
    }
    let cancelled = Set(try ids.filter { try $0.batch.order % 7 == 0 && sender.cancel($0) })
    let consumer = try queue.consume()
    var delivered: [QueueEntryID] = []
    while let entry = try consumer.next(until: .now) {
      #expect(!entry.isRedelivery)
      delivered.append(entry.id)
      try entry.acknowledge()
    }
    #expect(proxy.lost > 10)
    #expect(delivered == ids.filter { !cancelled.contains($0) })
    #expect(Set(try sender.outcomes().map(\.id)) == cancelled)
    #expect(try sender.receipts().count == count / 10)
    #expect(try keys(.entries, of: queue) == [] && keys(.owners, of: queue) == [])
  }

  private func queue(through requests: CountedRequests) throws -> PlainQueue {
    let location = EtcdLocation(
      endpoints: [try EtcdNode.shared.get().endpoint], prefix: "counted/\(Nonce.next())")
    return try SharedContainer(
      EtcdContainer.created(location, through: requests), companion: directory.path
    ).queue("q")
  }

  /// Takes the right of all consumers away, as a successor does first, and the end of their sessions.
  private func endConsumers(of queue: PlainQueue) throws {
    let keys = try #require(queue.store as? EtcdQueue)
    for item in try keys.client.read(keys.range(.consumers), until: soon).items {
      _ = try keys.client.commit(
        EtcdTransaction(if: [.exists(item.key)], then: [.delete(.key(item.key))]), until: soon)
    }
  }

  @Test("does not let a caller wait for the end of a consumer that was replaced")
  func lostEnd() throws {
    let requests = CountedRequests()
    let queue = try queue(through: requests)
    try queue.sender("a").enqueue(1)
    let consumer = try queue.work()
    #expect(try consumer.next(until: .now) != nil)
    try endConsumers(of: queue)
    let before = requests.removals(by: .current)
    #expect(try consumer.next(until: .now)?.isRedelivery == true)
    // The end removes its key. If etcd does not answer, it is tried for two seconds.
    #expect(requests.removals(by: .current) == before && before > 0)
    try eventually("the former registration is gone") { try queue.role.members().count == 1 }
  }

  @Test("is joined and left though the answers are lost, and no consumer remains")
  func lostJoining() throws {
    let requests = CountedRequests()
    let queue = try queue(through: requests)
    for number in 0..<4 { try queue.sender("a").enqueue(PropertyListValue(number)) }
    for number in 0..<4 {
      requests.loseNextAnswer(of: "kv/txn")
      let consumer = try number.isMultiple(of: 2) ? queue.consume() : queue.work()
      let entry = try #require(try consumer.next(until: soon))
      #expect(entry.payload.intValue == number && !entry.isRedelivery)
      try entry.acknowledge()
      requests.loseNextAnswer(of: "kv/txn")
      consumer.close()
      #expect(try keys(.consumers, of: queue) == [] && queue.role.members().isEmpty)
    }
  }

  /// The queue as another process has it, whose opening of the container has looked at it.
  private func opened(_ queue: PlainQueue, through requests: CountedRequests) throws -> PlainQueue {
    var location = try #require(queue.container.engine as? EtcdContainer).location
    // Containers at one location are one.
    location.lifetime = .seconds(60 + requests.paths.count)
    var limit = CallLimit()
    limit.first = .queue("q")
    let etcd = try #require(try EtcdContainer.open(location, limit, through: requests))
    return try SharedContainer(etcd, companion: directory.path).queue("q")
  }

  @Test("gives an entry to a joining consumer, which ends it leaving, though the answers are lost")
  func lostTaking() throws {
    let requests = CountedRequests()
    let queue = try queue(through: requests)
    for number in 0..<4 { try queue.sender("a").enqueue(PropertyListValue(number)) }
    for number in 0..<4 {
      let queue = try opened(queue, through: requests)
      requests.loseNextAnswer(of: "kv/txn")
      let consumer = try number.isMultiple(of: 2) ? queue.consume() : queue.work()
      #expect(try keys(.owners, of: queue).count == 1)
      let entry = try #require(try consumer.next(until: soon))
      #expect(entry.payload.intValue == number && !entry.isRedelivery)
      consumer.takesNoMore()
      requests.loseNextAnswer(of: "kv/txn")
      try entry.acknowledge()
      #expect(try keys(.consumers, of: queue) == [] && queue.role.members().isEmpty)
      let before = requests.paths.count
      consumer.close()
      #expect(requests.paths.count == before)
    }
    #expect(try keys(.entries, of: queue) == [] && keys(.owners, of: queue) == [])
  }

  @Test("gives a joining consumer the next entry if others have changed what the opening has seen")
  func changedMeanwhile() throws {
    let requests = CountedRequests()
    let queue = try queue(through: requests)
    let sender = try queue.sender("a")
    let ids = try (0..<5).map { try sender.enqueue(PropertyListValue($0)) }
    let looks = try (0..<2).map { _ in try opened(queue, through: requests) }
    #expect(try sender.cancel(ids[0]))
    let first = try looks[0].work()
    #expect(try first.next(until: soon)?.payload == 1)
    let second = try looks[1].work()
    #expect(try second.next(until: soon)?.payload == 2)
    first.close()
    // An entry that was left precedes those that wait, and none of these is taken yet.
    let third = try opened(queue, through: requests).work()
    let left = try #require(try third.next(until: soon))
    #expect(left.payload == 1 && left.isRedelivery)
    let last = try opened(queue, through: requests)
    third.close()
    // Left only after the look: what was taken by it was not delivered before, so it comes first.
    let fourth = try last.work()
    for (number, isRedelivery) in [(3, false), (1, true), (4, false)] {
      let entry = try #require(try fourth.next(until: soon))
      #expect(entry.payload.intValue == number && entry.isRedelivery == isRedelivery)
    }
  }

  @Test("ends an entry and its consumer though the consumer's registration is lost")
  func lostRegistration() throws {
    let queue = try queue(through: CountedRequests())
    try queue.sender("a").enqueue(1)
    let consumer = try queue.work()
    let entry = try #require(try consumer.next(until: soon))
    let etcd = try #require(queue.container.engine as? EtcdContainer)
    let members = EtcdPresence(etcd, name: "q", kind: queue.role.kind).members
    for item in try etcd.client.read(members, until: soon).items {
      _ = try etcd.client.commit(
        EtcdTransaction(if: [.exists(item.key)], then: [.delete(.key(item.key))]), until: soon)
    }
    consumer.takesNoMore()
    try entry.acknowledge()
    #expect(try keys(.entries, of: queue) == [] && keys(.consumers, of: queue).count == 1)
    consumer.close()
    #expect(try keys(.consumers, of: queue) == [])
  }

  @Test("is not a consumer's any longer once it has lost its key, however late it notices")
  func fenced() throws {
    let queue = try queue()
    let sender = try queue.sender("a")
    for number in 0..<3 { try sender.enqueue(PropertyListValue(number)) }
    let first = try queue.consume()
    let entries = try (0..<2).map { _ in try #require(try first.next(until: .now)) }
    try endConsumers(of: queue)
    for entry in entries {
      let error = #expect(throws: WormholeError.self) { try entry.acknowledge() }
      #expect(error?.code == .leaseLost)
    }
    #expect(throws: WormholeError.self) { try entries[0].retry(after: .zero, because: "again") }
    #expect(try sender.status(of: entries[0].id) == .taken)
    let taken = try first.next(until: soon)
    #expect(taken?.id == entries[0].id && taken?.isRedelivery == true, "it has joined again")
    first.close()
    let second = try queue.consume()
    let again = try (0..<3).map { _ in try #require(try second.next(until: .now)) }
    #expect(again.map { $0.payload.intValue } == [0, 1, 2])
    #expect(again.map(\.isRedelivery) == [true, true, false])
  }

  @Test("puts a damaged batch aside, delivers the rest, and reports it to the sender")
  func damaged() throws {
    let queue = try queue()
    let sender = try queue.sender("a")
    let ids = try (0..<3).map { try sender.enqueue(PropertyListValue($0)) }
    let keys = try #require(queue.store as? EtcdQueue)
    let key = keys.entryKey(ids[1].batch)
    _ = try keys.client.commit(
      EtcdTransaction(
        if: [.exists(key)], then: [.put(key: key, value: Array("bplist00 no".utf8))]),
      until: soon)
    let consumer = try queue.consume()
    for number in [0, 2] {
      let entry = try #require(try consumer.next(until: .now))
      #expect(entry.payload.intValue == number)
      try entry.acknowledge()
    }
    #expect(try consumer.next(until: .now) == nil)
    guard case .failed = try sender.status(of: ids[1]) else {
      Issue.record("\(try sender.status(of: ids[1]))")
      return
    }
    #expect(try self.keys(.foreign, of: queue).count == 1)
    #expect(try self.keys(.entries, of: queue) == [])
  }

  @Test("lets an entry of another machine live as long as its sender meant, by whatever clock")
  func otherClock() throws {
    let queue = try queue()
    let keys = try #require(queue.store as? EtcdQueue)
    let consumer = try queue.consume()
    #expect(try consumer.next(until: .now) == nil)
    // Sent by a machine whose clock is an hour behind, or ahead.
    for (number, hours) in [-1, 1].enumerated() {
      for (index, seconds) in [30, 0].enumerated() {
        let sent = Date(timeIntervalSinceNow: Double(hours * 3_600))
        let list: PropertyListValue = [
          "payload": PropertyListValue(2 * number + index), "namespace": 1, "uptime": 0,
          "expires": .date(sent.addingTimeInterval(Double(seconds))),
        ]
        let bytes = try PropertyListValue.dictionary(["entries": .array([list])]).binaryBytes()
        let name = EntryFile(
          order: UInt64(sent.timeIntervalSince1970 * 1e9), sender: "a\(number)\(index)", count: 1,
          bytes: bytes.count)
        let key = keys.entryKey(name)
        _ = try keys.client.commit(
          EtcdTransaction(if: [.absent(key)], then: [.put(key: key, value: bytes)]), until: soon)
      }
    }
    #expect(try consumer.next(until: soon)?.payload == 0)
    #expect(try consumer.next(until: soon)?.payload == 2)
    #expect(try consumer.next(until: .now) == nil)
  }

  @Test("refuses an entry that is larger than a transaction, and says so")
  func tooLarge() throws {
    let sender = try queue().sender("a")
    let value = PropertyListValue.string(String(repeating: "x", count: 600 << 10))
    try sender.enqueue(value)
    let error = #expect(throws: WormholeError.self) {
      try sender.enqueue(value, keepsReceipt: true)
    }
    #expect(error?.code == .tooLarge)
  }
}
