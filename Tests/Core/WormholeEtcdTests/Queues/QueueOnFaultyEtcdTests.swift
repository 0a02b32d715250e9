import Dispatch
import Synchronization
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

@Suite(
  "A queue on a faulty etcd", .blocking, .waiting,
  .needsEtcd)
struct QueueOnFaultyEtcdTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func queue(_ endpoint: String, prefix: String = "test") throws -> PlainQueue {
    var location = EtcdLocation(endpoints: [endpoint], prefix: prefix)
    // The session outlives a call that gets no answer.
    location.lifetime = .seconds(60)
    return try SharedContainer(etcd: location, companion: directory.path).queue("q")
  }

  /// An end of an entry whose answer is lost until the history is given up.
  ///
  /// - Parameters:
  ///   - leaves: whether a worker leaves with it.
  ///   - meanwhile: what else happens until then.
  private func endInDoubt(
    leaves: Bool = false, meanwhile: (EtcdQueue) throws -> Void
  ) throws -> WormholeError? {
    let node = try EtcdNode()
    let proxy = try LossyProxy(to: node.endpoint)
    let keys = try #require(try queue(node.endpoint).store as? EtcdQueue)
    let queue = try queue(proxy.endpoint)
    try queue.sender("a").enqueue(1)
    let consumer = try leaves ? queue.work() : queue.consume()
    let entry = try #require(try consumer.next(until: soon))
    if leaves { consumer.takesNoMore() }
    proxy.lose(oneIn: 1)
    let failure = Mutex<(any Error)?>(nil)
    let end = DispatchGroup()
    DispatchQueue(label: "end").async(group: end) {
      do { try entry.acknowledge() } catch { failure.withLock { $0 = error } }
    }
    let owner = keys.ownerKey(entry.id.batch)
    try eventually("the entry has ended") {
      try keys.client.read(.key(owner), until: soon).items.isEmpty
    }
    try meanwhile(keys)
    let now = try keys.client.read(.key(owner), until: soon).revision
    try node.ask("kv/compaction", #"{"revision":"\#(now)"}"#)
    proxy.lose(oneIn: 0)
    end.wait()
    return try failure.withLock { $0 }.map { try #require($0 as? WormholeError) }
  }

  @Test("knows that an entry has ended, though the history that showed it is gone")
  func endInDoubt() throws {
    #expect(try endInDoubt(meanwhile: { _ in })?.code == nil)
    #expect(try endInDoubt(leaves: true, meanwhile: { _ in })?.code == nil)
  }

  @Test("says that the end of an entry is unknown, if it was replaced and the history is gone")
  func unknownEnd() throws {
    let error = try endInDoubt { keys in
      let consumers = keys.range(.consumers)
      let condition = EtcdTransaction.Condition.absent(keys.key(.entries, "none"))
      _ = try keys.client.commit(
        EtcdTransaction(if: [condition], then: [.delete(consumers)]), until: soon)
    }
    #expect(error?.code == .outcomeUnknown, "\(String(describing: error))")
  }

  /// An entry that a consumer has taken through a proxy, and direct access to the keys of its queue.
  private struct Taken {
    let node: EtcdNode
    let proxy: LossyProxy
    let consumer: PlainConsumer
    let entry: PlainEntry
    let keys: EtcdQueue
    let owner: [UInt8]
  }

  private func taken() throws -> Taken {
    let node = try EtcdNode()
    let proxy = try LossyProxy(to: node.endpoint)
    let queue = try queue(proxy.endpoint)
    try queue.sender("a").enqueue(1)
    let consumer = try queue.consume()
    let entry = try #require(try consumer.next(until: soon))
    let keys = try #require(try self.queue(node.endpoint).store as? EtcdQueue)
    let owner = keys.ownerKey(entry.id.batch)
    return Taken(
      node: node, proxy: proxy, consumer: consumer, entry: entry, keys: keys, owner: owner)
  }

  @Test("says that the end of an entry is unknown, if its answer was lost and then nobody answers")
  func lostEnd() throws {
    let taken = try taken()
    let (proxy, entry, keys, owner) = (taken.proxy, taken.entry, taken.keys, taken.owner)
    let error = try failure(
      of: { try entry.acknowledge() }, losing: proxy,
      until: { try keys.client.read(.key(owner), until: soon).items.isEmpty })
    #expect(error?.code == .outcomeUnknown, "\(String(describing: error))")
  }

  @Test("keeps the record of an owner small, however often its entry is given back")
  func releases() throws {
    let queue = try queue(EtcdNode.shared.get().endpoint, prefix: "releases" + directory.path)
    try queue.sender("a").enqueue(1)
    let consumer = try queue.consume()
    var bytes: [Int] = []
    for round in 1...40 {
      let entry = try #require(try consumer.next(until: soon))
      #expect(entry.attempt == round)
      try entry.retry(after: .milliseconds(1), because: "again")
      let keys = try #require(queue.store as? EtcdQueue)
      let owner = keys.ownerKey(entry.id.batch)
      bytes.append(try #require(keys.client.read(.key(owner), until: soon).items.first).value.count)
    }
    #expect(bytes[39] < bytes[1] + 8, "\(bytes)")
  }

  @Test("puts a batch aside that is too large to be put aside whole")
  func largeBatch() throws {
    let queue = try queue(EtcdNode.shared.get().endpoint, prefix: "large" + directory.path)
    let keys = try #require(queue.store as? EtcdQueue)
    try queue.sender("a").enqueue(1)
    let waiting = try keys.client.read(keys.range(.entries), until: soon).items
    let key = try #require(waiting.first).key
    _ = try keys.client.commit(
      EtcdTransaction(
        if: [.version(of: key, -1, is: .greater)],
        then: [.put(key: key, value: [UInt8](repeating: 1, count: 1_572_400))]),
      until: soon)
    try queue.sender("a").enqueue(2)
    let entry = try #require(try queue.consume().next(until: soon))
    #expect(entry.payload == 2)
  }

  @Test("takes a mark back that was made, though its answer was lost")
  func lostMark() throws {
    try afterLostMark { entry, marks in
      // A sender does this before it removes the content; the next one believes the mark.
      try entry.unmark()
      #expect(try marks() == [])
      #expect(try entry.marked() == nil)
    }
  }

  @Test("knows a mark that was made, though its answer was lost")
  func foundMark() throws {
    try afterLostMark { entry, _ in
      let mark = try entry.marked()
      #expect(mark == "whole")
    }
  }

  /// Marks a taken entry, which etcd does without an answer, and then answers again.
  ///
  /// - Parameter body: Gets the entry, and a look at the marks that etcd has.
  private func afterLostMark(_ body: (PlainEntry, () throws -> [String]) throws -> Void) throws {
    let taken = try taken()
    let (proxy, entry, keys, owner) = (taken.proxy, taken.entry, taken.keys, taken.owner)
    func marks() throws -> [String] {
      let item = try keys.client.read(.key(owner), until: soon).items.first
      return BatchOwner(try #require(item).value).marks.values.sorted()
    }
    let error = try failure(
      of: { try entry.mark("whole") }, losing: proxy,
      until: { try marks() == ["whole"] })
    #expect(error?.code == .outcomeUnknown, "\(String(describing: error))")
    proxy.lose(oneIn: 0)
    proxy.unblock()
    try body(entry, marks)
    try entry.acknowledge()
  }

  /// Runs a call whose answers are lost until it is done; then etcd does not answer.
  private func failure(
    of call: @escaping @Sendable () throws -> Void, losing proxy: LossyProxy,
    until isDone: () throws -> Bool
  ) throws -> WormholeError? {
    proxy.lose(oneIn: 1)
    let failure = Mutex<(any Error)?>(nil)
    let end = DispatchGroup()
    DispatchQueue(label: "call").async(group: end) {
      do {
        try call()
      } catch {
        failure.withLock { $0 = error }
      }
    }
    try eventually("it is done", isDone)
    proxy.block()
    end.wait()
    return try failure.withLock { $0 }.map { try #require($0 as? WormholeError) }
  }

  @Test("says that a post is unknown, if its answer was lost and then nobody answers")
  func lostPost() throws {
    let node = try EtcdNode()
    let proxy = try LossyProxy(to: node.endpoint)
    let container = try queue(proxy.endpoint).container
    let client = node.client()
    let key = Array("test/n/b".utf8)
    let error = try failure(
      of: { try container.notification("b").post() }, losing: proxy,
      until: { try !client.read(.key(key), until: soon).items.isEmpty })
    #expect(error?.code == .outcomeUnknown, "\(String(describing: error))")
  }

  // A call without a deadline takes ten seconds.
  @Test(
    "says that etcd does not answer when its caller's deadline has passed, not ten seconds later")
  func deadline() throws {
    let node = try EtcdNode()
    let queue = try queue(node.endpoint)
    let consumer = try queue.consume()
    node.end()
    let start = ContinuousClock.now
    let error = #expect(throws: WormholeError.self) { try consumer.next(until: .now) }
    #expect(error?.code == .clusterUnreachable, "\(String(describing: error))")
    #expect(ContinuousClock.now - start < .seconds(8))
  }
}
