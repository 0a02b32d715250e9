import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeEtcd

@Suite("A client of etcd", .blocking, .needsEtcd)
struct TransactionTests {
  private func code(_ body: () throws -> Void) -> EtcdError.Code? {
    do {
      try body()
      return nil
    } catch let error as EtcdError {
      return error.code
    } catch {
      Issue.record(error)
      return nil
    }
  }

  @Test("changes a key only if the conditions hold, and reads what is there otherwise")
  func comparing() throws {
    let scene = try Scene()
    let key = scene.key("a")
    func create(_ text: String) throws -> EtcdTransaction.Outcome {
      try scene.client.commit(
        EtcdTransaction(
          if: [.absent(key)], then: [.put(key: key, value: Array(text.utf8))],
          otherwise: [.key(key)]),
        until: soon)
    }
    let first = try create("one")
    #expect(first.succeeded)
    #expect(first.results == [.put])
    let second = try create("two")
    #expect(!second.succeeded)
    let there = KeyValue(
      key: key, value: Array("one".utf8), created: first.revision, modified: first.revision,
      version: 1, lease: 0)
    #expect(second.results == [.read([there])])

    let third = try scene.client.commit(
      EtcdTransaction(
        if: [
          .exists(key), .modified(key, at: first.revision), .created(key, at: first.revision),
          .version(of: key, 2, is: .less), .value(of: key, Array("one".utf8)),
        ],
        then: [.read(.key(key)), .delete(scene.all), .read(.key(key))]), until: soon)
    #expect(third.succeeded)
    #expect(third.results == [.read([there]), .deleted, .read([])])
  }

  @Test("reads a range in pages, all of one revision, also a past one")
  func pages() throws {
    let scene = try Scene()
    let names = (0..<25).map { "k\($0 + 10)" }
    _ = try scene.client.commit(
      EtcdTransaction(
        if: names.map { .absent(scene.key($0)) },
        then: names.map { .put(key: scene.key($0), value: Array($0.utf8)) }), until: soon)
    let before = try scene.client.read(scene.all, pageSize: 10, until: soon)
    #expect(before.items.map { $0.key } == names.map { scene.key($0) })
    let keys = try scene.client.read(scene.all, keysOnly: true, pageSize: 7, until: soon)
    #expect(keys.items.map { $0.modified } == before.items.map { $0.modified })
    #expect(keys.items.allSatisfy { $0.value.isEmpty })
    try scene.set("k34", "later")
    let past = try scene.client.page(
      scene.all, keysOnly: true, at: before.revision, limit: 30, until: soon)
    #expect(past.items.map { $0.modified } == before.items.map { $0.modified })
    let empty = try scene.client.read(.prefix(scene.key("none")), until: soon)
    #expect(empty.items.isEmpty)
    #expect(empty.revision >= before.revision)
  }

  @Test("reads again from the beginning if the history is compacted between two pages")
  func compactedBetweenPages() throws {
    let node = try EtcdNode()
    let direct = node.client()
    let value = EtcdTransaction.Condition.version(of: [1], -1, is: .greater)
    @Sendable func put(_ names: [String], _ text: String) throws -> Int64 {
      try direct.commit(
        .init(if: [value], then: names.map { .put(key: Array($0.utf8), value: Array(text.utf8)) }),
        until: soon
      ).revision
    }
    let names = (0..<9).map { "p/\($0)" }
    _ = try put(names, "old")
    let reads = Atomic(0)
    let proxy = try LossyProxy(to: node.endpoint) { path in
      guard path == "/v3/kv/range" else { return }
      // Before the second page of the first reading, and of the next one: the first pages are read together.
      guard [1, 2].contains(reads.wrappingAdd(1, ordering: .relaxed).newValue) else { return }
      do {
        let revision = try put(names, "new")
        try node.ask("kv/compaction", "{\"revision\":\(revision)}")
      } catch {
        Issue.record(error)
      }
    }
    let client = node.client { $0.endpoints = [proxy.endpoint] }
    let (moment, items) = try client.read(
      [.init(.prefix(Array("p/".utf8))), .init(.key(Array("p/3".utf8)), keysOnly: true)],
      pageSize: 5, until: soon)
    #expect(items[0].map { String(decoding: $0.value, as: UTF8.self) } == names.map { _ in "new" })
    #expect(items[1].map(\.modified) == [moment.revision])
    #expect(reads.load(ordering: .relaxed) == 3)
  }

  @Test("reads in shorter pages where a page is longer than an answer may be")
  func shorterPages() throws {
    let scene = try Scene()
    for number in 0..<10 { try scene.set("\(number)", String(repeating: "x", count: 5_000)) }
    let node = try EtcdNode.shared.get()
    let small = node.client { $0.maximumAnswerBytes = 20_000 }
    #expect(try small.read(scene.all, until: soon).items.map(\.value.count).reduce(0, +) == 50_000)
    let tiny = node.client { $0.maximumAnswerBytes = 4_000 }
    #expect(code { _ = try tiny.read(scene.all, until: soon) } == .tooLarge)
  }

  @Test("keeps a lease alive, which ends with its keys")
  func leases() throws {
    let scene = try Scene()
    let lease = try scene.client.grantLease(lifetime: .seconds(60), until: soon)
    try scene.set("leased", "x", lease: lease)
    try scene.client.keepLeaseAlive(lease, until: soon)
    #expect(try scene.client.lifetime(ofLease: lease, until: soon) == .seconds(60))
    #expect(try scene.client.read(scene.all, until: soon).items.map(\.lease) == [lease])
    try scene.client.revokeLease(lease, until: soon)
    try scene.client.revokeLease(lease, until: soon)
    #expect(try scene.client.read(scene.all, until: soon).items.isEmpty)
    #expect(code { try scene.client.keepLeaseAlive(lease, until: soon) } == .leaseGone)
    #expect(try scene.client.lifetime(ofLease: lease, until: soon) == nil)
    #expect(code { try scene.set("late", "x", lease: lease) } == .leaseGone)
  }

  @Test("says what is too large, and changes nothing")
  func limits() throws {
    let scene = try Scene()
    let large = longText(1_700_000)
    #expect(code { try scene.set("large", large) } == .tooLarge)
    let many = EtcdTransaction(
      if: [.absent(scene.key("0"))],
      then: (0..<129).map { .put(key: scene.key("\($0)"), value: []) })
    #expect(code { _ = try scene.client.commit(many, until: soon) } == .tooLarge)
    #expect(try scene.client.read(scene.all, until: soon).items.isEmpty)
  }

  @Test("says at its deadline what each endpoint said")
  func unreachable() throws {
    let ports = try (0..<2).map { _ in try EtcdNode.freePort() }
    let client = EtcdClient(
      EtcdConfiguration(endpoints: ports.map { "http://127.0.0.1:\($0)" }))
    do {
      _ = try client.read(.key([1]), until: .now + .milliseconds(200))
      Issue.record("nobody can have answered")
    } catch {
      #expect(error.code == .unreachable)
      for port in ports {
        #expect(error.reason.contains("http://127.0.0.1:\(port): it refused the connection"))
      }
    }
    let node = try EtcdNode.shared.get()
    let second = node.client { $0.endpoints.insert("http://127.0.0.1:\(ports[0])", at: 0) }
    #expect(try second.read(.key([1]), until: soon).items.isEmpty)
  }
}
