import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeEtcd
@testable import WormholeInspection

/// What a process knows by a revision that a replaced history gives a second time.
@Suite("A revision that comes again", .blocking, .needsEtcd)
final class EtcdRevisionTests: RestoredEtcd {
  @Test("lets no change pass that was worked out from a value of the former history")
  func versions() throws {
    let value = container.value("x")
    try value.replace(with: 1)
    try node.endAndSave()
    // Known, with its revision, until the next change.
    try value.replace(with: 5)
    let known = try #require(try value.version())
    try node.endAndRestore()
    // The same key is changed at the same revision.
    try node.grow(before: Int64(known.revision))
    let other = try other()
    try other.value("x").replace(with: 20)
    #expect(try other.value("x").version()?.revision == known.revision)
    try value.update { $0 = .integer(($0?.int64Value ?? 0) + 1) }
    #expect(try other.value("x").read() == 21)
    #expect(try !value.compareAndSet(known, 7))
    #expect(etcd.client.history == 0, "nothing could show it")
  }

  @Test(
    "lets no change of several values pass that was worked out from one of the former history",
    arguments: [false, true])
  func severalVersions(_ changesIt: Bool) throws {
    for name in ["x", "y", "z"] { try container.value(name).replace(with: 1) }
    try node.endAndSave()
    let (node, other) = (node, try other())
    try container.value("y").replace(with: 5)
    let known = try #require(try container.value("y").version())
    let runs = Atomic(0)
    try container.update(["x", "y", "z"]) { values in
      if runs.wrappingAdd(1, ordering: .relaxed).oldValue == 0 {
        try node.endAndRestore()
        try other.value("y").replace(with: 20)
        #expect(try other.value("y").version()?.revision == known.revision)
      }
      let number = values["y"]?.int64Value ?? 0
      values["x"] = .integer(number + 1)
      if changesIt { values["y"] = .integer(number + 1) }
    }
    #expect(runs.load(ordering: .relaxed) == 2)
    #expect(try other.value("x").read() == 21)
    #expect(try other.value("y").read() == (changesIt ? 21 : 20))
    #expect(etcd.client.history == 0, "nothing could show it")
  }

  @Test("lets no consumer end what another one has taken at the same revision")
  func takenEntries() throws {
    let proxy = try LossyProxy(to: node.endpoint)
    let (far, farEtcd) = try far(proxy)
    let queue = far.queue("q")
    let store = try #require(queue.store as? EtcdQueue)
    let consumer = try queue.consume()
    try container.queue("q").sender("a").enqueue(1)
    try node.endAndSave()
    let taken = try #require(try consumer.next(until: soon))
    let owner = try #require(try store.until(soon).read([store.range(.owners)]).items[0].first)
    proxy.block()
    try node.endAndRestore()
    try node.grow(before: owner.modified)
    let others = try BatchOwner(consumer: "another").bytes(stamp: "1")
    let client = node.client()
    let taking = try client.commit(
      .init(if: [.absent(owner.key)], then: [.put(key: owner.key, value: others)]), until: soon)
    #expect(taking.succeeded && taking.revision == owner.modified)
    proxy.unblock()
    let error = #expect(throws: WormholeError.self) { try taken.acknowledge() }
    #expect(error?.code == .leaseLost)
    #expect(try client.read(.key(owner.key), until: soon).items.map(\.value) == [others])
    #expect(farEtcd.client.history == 0, "nothing could show it")
    withExtendedLifetime(consumer) {}
  }

  @Test("gives no role back that another one had since at the same revision")
  func roles() throws {
    let proxy = try LossyProxy(to: node.endpoint)
    let (far, farEtcd) = try far(proxy)
    // Both have a session, whose making has no revision.
    let sessions = [try farEtcd.until(soon).session(), try etcd.until(soon).session()]
    var entering: (role: PresenceRegistration, history: Int)?
    // A session that ends meanwhile has a revision: then both enter again.
    for attempt in 1...5 where entering == nil {
      try node.endAndSave()
      let history = Int(farEtcd.client.history)
      let role = try far.presence("p\(attempt)").enterExclusively(until: soon)
      let revision = Int64(role.fence.number)
      proxy.block()
      try node.endAndRestore()
      try node.grow(before: revision)
      let others = try container.presence("p\(attempt)").enterExclusively(until: soon)
      if Int64(others.fence.number) == revision { entering = (role, history) }
      others.close()
      proxy.unblock()
    }
    let (role, history) = try #require(entering)
    let error = #expect(throws: WormholeError.self) { try role.confirm() }
    #expect(error?.code == .leaseLost)
    #expect(farEtcd.client.history == history, "nothing could show it")
    withExtendedLifetime(sessions) {}
  }

  @Test("lets no message be meant for a session that has its mailbox no longer")
  func owners() throws {
    let mailbox = try container.makeMailbox { _ in }
    mailbox.end(asDeath: false)
    let keys = MailboxKeys(etcd, mailbox.address)
    let client = node.client()
    try eventually("nobody has it") {
      try client.read(.prefix(keys.owner), until: soon).items.isEmpty
    }
    func own(_ text: String) throws -> Int64 {
      let lease = try client.grantLease(lifetime: .seconds(60), until: soon)
      let outcome = try client.commit(
        .init(
          if: [.absent(keys.owner)],
          then: [.put(key: keys.owner, value: Array(text.utf8), lease: lease)]), until: soon)
      #expect(outcome.succeeded)
      return outcome.revision
    }
    let proxy = try LossyProxy(to: node.endpoint)
    let (far, farEtcd) = try far(proxy)
    let outlet = try #require(far.mailboxWriter(to: mailbox.address))
    try node.endAndSave()
    let made = try own("first")
    #expect(try outlet.post(0) == .posted)
    proxy.block()
    // The next one goes another way, of which etcd knows nothing.
    #expect(throws: (any Error).self) { try outlet.post(0, until: .now) }
    try node.endAndRestore()
    try node.grow(before: made)
    #expect(try own("second") == made)
    try node.grow(before: made + 2)
    proxy.unblock()
    #expect(try outlet.post(1) == .posted)
    #expect(try client.read(keys.entries, until: soon).items.count == 1)
    #expect(farEtcd.client.history == 0, "nothing could show it")
  }

  @Test("lets no copy have pages of two histories")
  func copies() throws {
    for number in 0..<70 { try container.value("\(number)").replace(with: 1) }
    try node.endAndSave()
    for number in 0..<70 { try container.value("\(number)").replace(with: 2) }
    let revision = try etcd.client.read(.key(etcd.formatKey), until: soon).revision
    var isFirst = true
    var faults = NameFaults()
    let isWhole = try EtcdSource(container: etcd).read(&faults) { _ in
      guard isFirst else { return }
      isFirst = false
      try node.endAndRestore()
      #expect(try etcd.client.read(.key(etcd.formatKey), until: soon).moment.history == 1)
      try node.grow(before: revision + 1)
    }
    #expect(!isWhole)
  }
}
