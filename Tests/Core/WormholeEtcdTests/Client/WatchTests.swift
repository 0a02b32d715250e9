import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeEtcd

/// What a watch has reported.
final class HeardEvents: Sendable {
  private let state = Mutex<([EtcdEvent], resumed: Int, end: EtcdError?)>(([], 0, nil))

  func take(_ news: EtcdNews) {
    state.withLock { state in
      switch news {
      case .events(let events): state.0 += events
      case .resumed: state.resumed += 1
      case .ended(let error): state.end = error
      }
    }
  }

  var events: [EtcdEvent] { state.withLock { $0.0 } }
  var values: [String] { events.map { String(decoding: $0.keyValue.value, as: UTF8.self) } }
  var resumed: Int { state.withLock { $0.resumed } }
  var end: EtcdError? { state.withLock { $0.end } }

  func wait(for values: [String]) throws {
    try eventually("\(values.last ?? "") is heard") { self.values.count >= values.count }
    #expect(self.values == values)
  }
}

@Suite("Watches", .blocking, .needsEtcd)
struct WatchTests {
  @Test("of several ranges share a connection, and hear what happened since their revision")
  func several() throws {
    let scene = try Scene()
    let before = try scene.set("a", "1")
    let (all, one, rest) = (HeardEvents(), HeardEvents(), HeardEvents())
    _ = scene.client.watch(scene.all, from: before, onNews: all.take)
    _ = scene.client.watch(.key(scene.key("b")), from: before, onNews: one.take)
    try scene.set("b", "2")
    try all.wait(for: ["1", "2"])
    try one.wait(for: ["2"])
    // Joins while the others are served, which hear nothing twice.
    let third = scene.client.watch(
      .range(from: scene.key("b"), to: scene.key("z")), from: before, onNews: rest.take)
    try scene.set("c", "3")
    try rest.wait(for: ["2", "3"])
    try all.wait(for: ["1", "2", "3"])
    third.cancel()
    _ = try scene.client.commit(
      EtcdTransaction(
        if: [.exists(scene.key("b"))],
        then: [
          .delete(.key(scene.key("b"))), .put(key: scene.key("d"), value: [UInt8(ascii: "4")]),
        ]
      ), until: soon)
    try all.wait(for: ["1", "2", "3", "", "4"])
    try one.wait(for: ["2", ""])
    #expect(one.events.map(\.kind) == [.put, .delete])
    #expect(rest.values == ["2", "3"])
    #expect(all.end == nil)
  }

  @Test("of 1,000 names share one connection, and each hears of its change")
  func many() throws {
    let scene = try Scene()
    let first = try scene.set("start", "x")
    let heard = (0..<1_000).map { _ in HeardEvents() }
    let watches = heard.enumerated().map { number, heard in
      scene.client.watch(.key(scene.key("\(number)")), from: first, onNews: heard.take)
    }
    for start in stride(from: 0, to: 1_000, by: 125) {
      _ = try scene.client.commit(
        EtcdTransaction(
          if: [.absent(scene.key("\(start)"))],
          then: (start..<start + 125).map {
            .put(key: scene.key("\($0)"), value: Array("\($0)".utf8))
          }), until: soon)
    }
    try eventually("all is heard") { heard.allSatisfy { !$0.events.isEmpty } }
    #expect(heard.map(\.values) == (0..<1_000).map { ["\($0)"] })
    // What is cancelled is heard no longer, what is added is.
    for watch in watches.dropLast() { watch.cancel() }
    let late = HeardEvents()
    let last = scene.client.watch(.key(scene.key("0")), from: first, onNews: late.take)
    try scene.set("0", "again")
    try late.wait(for: ["0", "again"])
    #expect(heard[0].values == ["0"])
    #expect(scene.client.watches.madeConnections == 1)
    for watch in [last] + watches.suffix(1) { watch.cancel() }
  }

  @Test("hear megabytes of one revision together")
  func large() throws {
    let scene = try Scene()
    let first = try scene.set("a0", "0")
    let value = [UInt8](repeating: UInt8(ascii: "x"), count: 700_000)
    // Two changes of half of what a line may have, and one of both at once.
    for number in 1...3 {
      _ = try scene.client.commit(
        EtcdTransaction(
          if: [.absent(scene.key("a\(number)"))],
          then: [.put(key: scene.key("a\(number)"), value: value)]), until: soon)
    }
    let batches = Mutex<[[EtcdEvent]]>([])
    _ = try scene.client.commit(
      EtcdTransaction(if: [.exists(scene.key("a1"))], then: [.delete(scene.all)]), until: soon)
    _ = scene.client.watch(scene.all, from: first) { news in
      if case .events(let events) = news { batches.withLock { $0.append(events) } }
    }
    try eventually("all is heard") { batches.withLock { $0.joined().count } == 8 }
    let events = batches.withLock { $0.flatMap { $0 } }
    #expect(
      events.filter { $0.kind == .put }.map(\.keyValue.value.count).dropFirst() == [
        700_000, 700_000, 700_000,
      ])
    #expect(events.filter { $0.kind == .delete }.count == 4)
    for batch in batches.withLock({ $0 }) {
      let revisions = batch.map(\.keyValue.modified)
      #expect(revisions == revisions.sorted())
    }
  }
}

/// Each test has a member of its own, which it stops, kills or changes.
@Suite(
  "Faults of a member", .blocking, .needsEtcd)
struct FaultTests {
  private let node: EtcdNode
  private let client: EtcdClient
  private let key = Array("key".utf8)

  init() throws {
    node = try EtcdNode()
    client = node.client {
      $0.probeInterval = .milliseconds(300)
      $0.probePatience = .milliseconds(500)
    }
  }

  /// Stores a value, whatever there was.
  @discardableResult
  private func set(_ text: String) throws -> Int64 {
    try client.commit(
      EtcdTransaction(
        if: [.version(of: key, -1, is: .greater)], then: [.put(key: key, value: Array(text.utf8))]),
      until: soon
    ).revision
  }

  @Test("that is killed and starts again: watches go on where they were, nothing twice")
  func restart() throws {
    let heard = HeardEvents()
    let first = try set("1")
    _ = client.watch(.key(key), from: first, onNews: heard.take)
    try heard.wait(for: ["1"])
    node.end()
    do {
      _ = try client.read(.key(key), until: .now + .milliseconds(100))
      Issue.record("nobody can have answered")
    } catch {
      #expect(error.code == .unreachable)
    }
    try node.start()
    try set("2")
    try heard.wait(for: ["1", "2"])
    #expect(heard.resumed > 0)
    #expect(heard.events.map(\.keyValue.version) == [1, 2])
  }

  @Test("that hangs: a write is in doubt, a read is not answered, and a watch goes on afterwards")
  func hanging() throws {
    let heard = HeardEvents()
    let first = try set("1")
    _ = client.watch(.key(key), from: first, onNews: heard.take)
    try heard.wait(for: ["1"])
    // A busy machine may have lost some already.
    let lost = client.watches.lostConnections
    try node.stop()
    defer {
      do { try node.goOn() } catch { Issue.record(error) }
    }
    let write = EtcdTransaction(
      if: [.modified(key, at: first)], then: [.put(key: key, value: Array("2".utf8))])
    do {
      _ = try client.commit(write, until: .now + .milliseconds(300))
      Issue.record("nobody can have answered")
    } catch {
      #expect(error.code == .outcomeUnknown, "\(error)")
    }
    do {
      _ = try client.read(.key(key), until: .now + .milliseconds(300))
      Issue.record("nobody can have answered")
    } catch {
      #expect(error.code == .unreachable, "\(error)")
    }
    // The probe gives up the silent connection, and the client opens the next one after that.
    try eventually("the client has looked at the member") { client.watches.lostConnections > lost }
    try node.goOn()
    // The write that was in doubt is made now or never, but not late.
    try set("3")
    try eventually("the watch goes on") { heard.values.last == "3" }
    #expect([["1", "3"], ["1", "2", "3"]].contains(heard.values))
    #expect(heard.resumed > 0)
  }

  @Test("that answers only on other connections: watches move from the silent one")
  func silentStream() throws {
    let heard = HeardEvents()
    let proxy = try LossyProxy(to: node.endpoint)
    let client = node.client {
      $0.endpoints = [proxy.endpoint]
      $0.probeInterval = .seconds(2)
    }
    let first = try set("1")
    let watch = client.watch(.key(key), from: first, onNews: heard.take)
    defer { watch.cancel() }
    try heard.wait(for: ["1"])
    try eventually("it was checked") { client.watches.pulses > 1 }
    let lost = client.watches.lostConnections
    proxy.silence("/v3/watch")
    try set("2")
    try heard.wait(for: ["1", "2"])
    #expect(client.watches.lostConnections > lost)
  }

  @Test("is checked only while it is asked nothing else that shows as much")
  func probes() throws {
    let interval = Duration.milliseconds(500)
    let probes = Atomic(0)
    let proxy = try LossyProxy(to: node.endpoint) { path in
      if path == "/v3/kv/range" { probes.add(1, ordering: .relaxed) }
    }
    let client = node.client {
      $0.endpoints = [proxy.endpoint]
      $0.probeInterval = interval
    }
    let lease = try client.grantLease(lifetime: .seconds(60), until: soon)
    let watch = client.watch(.key(key), from: 1) { _ in }
    defer { watch.cancel() }
    try eventually("nothing else is asked") { probes.load(ordering: .relaxed) > 0 }
    // As a session does. On a busy machine the pause between two may be as long as the interval.
    var allowed = probes.load(ordering: .relaxed) + 1
    var last = ContinuousClock.now
    let end = last + interval * 6
    while last < end {
      let sent = ContinuousClock.now
      try client.keepLeaseAlive(lease, until: soon)
      if .now - last >= interval { allowed += 1 }
      last = sent
    }
    #expect(probes.load(ordering: .relaxed) <= allowed)
  }

  @Test("that gives its history up reports that to watches and readers")
  func compaction() throws {
    let first = try set("1")
    try set("2")
    let last = try set("3")
    try node.ask("kv/compaction", "{\"revision\":\(last)}")
    let heard = HeardEvents()
    _ = client.watch(.key(key), from: first, onNews: heard.take)
    try eventually("it is reported") { heard.end != nil }
    #expect(heard.end?.code == .compacted)
    #expect(heard.end?.revision == last)
    #expect(heard.events.isEmpty)
    do {
      _ = try client.page(.key(key), at: first, limit: 1, until: soon)
      Issue.record("there is no such revision")
    } catch {
      #expect(error.code == .compacted)
    }
  }

  @Test("of another cluster is refused, before it gets a write")
  func otherCluster() throws {
    let other = try EtcdNode()
    // The cluster of the first answer is ours.
    _ = try client.read(.key(key), until: soon)
    let mixed = node.client { $0.endpoints.append(other.endpoint) }
    let write = EtcdTransaction(if: [.absent(key)], then: [.put(key: key, value: [1])])
    #expect(try mixed.commit(write, until: soon).succeeded)
    // It is there and would take it.
    #expect(try other.client().read(.key(key), until: soon).items.isEmpty)
    node.end()
    for put in [false, true] {
      // On a busy machine its answer may be later than a short deadline.
      try eventually("the reason names it") {
        do throws(EtcdError) {
          let deadline = ContinuousClock.now + .milliseconds(500)
          if put {
            try mixed.put(key, [1], until: deadline)
          } else {
            _ = try mixed.commit(write, until: deadline)
          }
          Issue.record("the wrong cluster has answered")
          return true
        } catch {
          #expect(error.code == .unreachable)
          return error.reason.contains("\(other.endpoint): it belongs to a different cluster")
        }
      }
    }
    #expect(try other.client().read(.key(key), until: soon).items.isEmpty)
  }
}
