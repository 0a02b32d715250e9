import Dispatch
import Synchronization
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeEtcd

/// What follows, in a process that lives on, when the cluster is restored from a snapshot.
@Suite("A restored etcd", .blocking, .needsEtcd)
final class EtcdHistoryTests: RestoredEtcd {
  @Test("ends the former session within the time of the call that finds it")
  func deadline() throws {
    let patience = Patience()
    let client = node.client { $0.transport = patience }
    try node.endAndSave()
    try grow()
    let session = try EtcdSession(client, lifetime: .seconds(60), until: soon)
    try node.endAndRestore()
    try eventually("the history was replaced") {
      _ = try client.read(.key(Array("x".utf8)), until: soon)
      return !session.isAlive
    }
    let deadline = ContinuousClock.now + .seconds(1)
    let questions = try patience.questions { session.endWithHistory(until: deadline) }
    #expect(questions.count == 1 && questions[0].deadline <= deadline)
  }

  @Test("gives observers and listeners the value of now without an event, and goes on")
  func observers() throws {
    let (value, name) = (container.value("v"), container.notification("n"))
    try value.replace(with: "kept")
    try name.post()
    try node.endAndSave()
    let seen = Mutex<[String]>([])
    let observation = try value.observe(startsWithCurrent: true, on: .global()) { snapshot in
      do {
        let text = try snapshot.propertyList()?.stringValue ?? "nothing"
        seen.withLock { $0.append(text) }
      } catch {
        // No member answers meanwhile.
        return
      }
    }
    defer { observation.cancel() }
    let heard = Atomic(0)
    let registration = try name.observe(on: .global()) { _ in
      _ = heard.wrappingAdd(1, ordering: .relaxed)
    }
    defer { registration.cancel() }
    let people = Mutex<[String]>([])
    let presence = try container.presence("p").observe(on: .global()) { members in
      people.withLock { $0 = members.map(\.id) }
    }
    defer { presence.cancel() }
    try grow()
    try value.replace(with: "lost")
    try name.post()
    let lost = try other().presence("p").enter()
    try eventually("all is seen") {
      seen.withLock { $0.last } == "lost" && people.withLock { $0 } == [lost.id]
        && heard.load(ordering: .relaxed) > 0
    }
    try node.endAndRestore()
    try eventually("the observer has the present value") { seen.withLock { $0.last } == "kept" }
    let before = heard.load(ordering: .relaxed)
    try other().value("v").replace(with: "new")
    try other().notification("n").post()
    let late = try other().presence("p").enter()
    try eventually("the observer and the listener get what follows") {
      seen.withLock { $0.last } == "new" && heard.load(ordering: .relaxed) > before
        && people.withLock { $0.contains(late.id) }
    }
    try eventually("doctor says it") { try container.report().cluster?.replacement != nil }
    let replaced = try #require(try container.report().cluster?.replacement)
    #expect(replaced.known > replaced.found && replaced.host == Program.hostName)
    withExtendedLifetime((lost, late)) {}
  }

  // The gate installs etcdctl.
  @Test(
    "is noticed after its owner has restored a snapshot",
    .disabled(if: EtcdNode.isControlMissing, "etcdctl is not installed"))
  func snapshots() throws {
    let (value, name, queue) = (
      container.value("v"), container.notification("n"), container.queue("q")
    )
    try value.replace(with: "kept")
    let seen = Mutex<PropertyListValue?>(nil)
    let observation = try value.observe(startsWithCurrent: true, on: .global()) { snapshot in
      do {
        let content = try snapshot.propertyList()
        seen.withLock { $0 = content }
      } catch {
        // No member answers meanwhile.
        return
      }
    }
    defer { observation.cancel() }
    let heard = Atomic(0)
    let registration = try name.observe(on: .global()) { _ in
      _ = heard.wrappingAdd(1, ordering: .relaxed)
    }
    defer { registration.cancel() }
    let sender = try other().queue("q").sender("a")
    let consumer = try queue.consume()
    try sender.enqueue("kept")
    let snapshot = directory.path + "/snapshot"
    try runQuietly("etcdctl", ["--endpoints", node.endpoint, "snapshot", "save", snapshot])
    try #require(try consumer.next(until: soon)).acknowledge()
    try grow()
    try value.replace(with: "lost")
    try eventually("all is seen") { seen.withLock { $0 } == "lost" }
    try node.endAndRestore(snapshot)
    try eventually("the observer has the present value") { seen.withLock { $0 } == "kept" }
    let before = heard.load(ordering: .relaxed)
    try other().value("v").replace(with: "new")
    try other().notification("n").post()
    try sender.enqueue("new")
    try eventually("the observer and the listener get what follows") {
      seen.withLock { $0 } == "new" && heard.load(ordering: .relaxed) > before
    }
    var found: [(PropertyListValue, Bool)] = []
    while found.count < 2, let entry = try consumer.next(until: soon) {
      found.append((entry.payload, entry.isRedelivery))
      try entry.acknowledge()
    }
    #expect(found.map(\.0) == ["kept", "new"] && found.map(\.1) == [true, false])
    #expect(etcd.client.history == 1)
  }

  @Test("takes roles and sessions from their holders, also if it brings them back")
  func holders() throws {
    let presence = container.presence("p")
    let (role, guest) = (
      try container.presence("role").enterExclusively(until: soon), try presence.enter()
    )
    let loss = Mutex<WormholeError?>(nil)
    role.onLoss { error in loss.withLock { $0 = error } }
    let session = try etcd.until(soon).session()
    try node.endAndSave()
    try grow()
    try role.confirm()
    try node.endAndRestore()
    // What is done each half minute.
    #expect(etcd.shared.followers.checkAll(of: etcd.shared))
    try eventually("the loss is reported") { loss.withLock { $0 } != nil }
    #expect(loss.withLock { $0 }?.code == .leaseLost)
    try eventually("it is lost") {
      do {
        try role.confirm()
        return false
      } catch let error as WormholeError {
        return error.code == .leaseLost
      }
    }
    #expect(!session.isAlive)
    // The role is free at once, because its lease was ended; who has none is present again.
    let next = try other().presence("role").enterExclusively(until: soon)
    try eventually("the guest is back") { try presence.members().map(\.id) == [guest.id] }
    try guest.confirm()
    withExtendedLifetime(next) {}
  }

  @Test("lets consumers go on, which mark what they had before, and whose entries are lost")
  func consumers() throws {
    let queue = container.queue("q")
    let sender = try other().queue("q").sender("a")
    for number in 0..<3 { try sender.enqueue(PropertyListValue(number)) }
    let consumer = try queue.consume()
    let taken = try #require(try consumer.next(until: soon))
    try node.endAndSave()
    let ended = try #require(try consumer.next(until: soon))
    try ended.acknowledge()
    try grow()
    try node.endAndRestore()
    // Until its key has ended, the owner that the snapshot has brought back holds.
    let keys = try #require(queue.store as? EtcdQueue)
    try eventually("its right has ended") {
      try keys.until(soon).read([keys.range(.consumers)]).items[0].isEmpty
    }
    #expect(etcd.client.history == 1)
    let error = #expect(throws: WormholeError.self) { try taken.acknowledge() }
    #expect(error?.code == .leaseLost)
    try sender.enqueue(3)
    var found: [Int?] = []
    var marks: [Bool] = []
    while found.count < 4, let entry = try consumer.next(until: soon) {
      found.append(entry.payload.intValue)
      marks.append(entry.isRedelivery)
      try entry.acknowledge()
    }
    #expect(found == [0, 1, 2, 3])
    #expect(marks == [true, true, false, false])
  }

  /// What happens to a message that waits when the snapshot is made.
  enum Fate: CaseIterable {
    /// It is delivered.
    case delivered
    /// The same; and the next history is longer than what the mailbox knew before it looks.
    case deliveredUnnoticed
    /// The same; and so many others since that it is forgotten.
    case deliveredLongAgo
    /// It ends with the session of its mailbox.
    case ended
  }

  @Test("brings no message back into a mailbox", arguments: Fate.allCases)
  func mailboxes(_ fate: Fate) throws {
    let proxy = try LossyProxy(to: node.endpoint)
    let location = EtcdLocation(endpoints: [proxy.endpoint], prefix: "test")
    let far = try SharedContainer(etcd: location, companion: directory.path)
    guard let farEtcd = far.engine as? EtcdContainer else { throw Errno.invalidArgument }
    let delivered = Mutex<[PropertyListValue]>([])
    let others = Atomic(0)
    let mailbox = try far.makeMailbox { value in
      guard value != 0 else {
        _ = others.wrappingAdd(1, ordering: .relaxed)
        return
      }
      delivered.withLock { $0.append(value) }
    }
    defer { mailbox.end(asDeath: false) }
    let outlet = try #require(container.mailboxWriter(to: mailbox.address))
    let session = try farEtcd.until(soon).session()
    proxy.block()
    #expect(try outlet.post(1) == .posted)
    try node.endAndSave()
    if fate == .ended {
      try etcd.client.revokeLease(session.lease, until: soon)
      // Otherwise the watch would report the message all the same.
      let revision = try etcd.client.read(.key(etcd.formatKey), until: soon).revision
      try node.ask("kv/compaction", "{\"revision\": \"\(revision)\"}")
    }
    proxy.unblock()
    if fate == .ended {
      try eventually("its mailbox is made again") { try outlet.post(2) == .posted }
    } else {
      #expect(try outlet.post(2) == .posted)
    }
    let before: [PropertyListValue] = fate == .ended ? [2] : [1, 2]
    try eventually("it is delivered") { delivered.withLock { $0 } == before }
    let keys = MailboxKeys(etcd, mailbox.address).entries
    try eventually("it is deleted") { try etcd.client.read(keys, until: soon).items.isEmpty }
    if fate == .deliveredLongAgo {
      let count = LatestKeys.limit + 100
      let mailboxKeys = MailboxKeys(etcd, mailbox.address)
      for start in stride(from: 0, to: count, by: 100) {
        let puts = try (start..<start + 100).map { number in
          let entry = EntryFile(order: UInt64(number), sender: "others", count: 1, bytes: 0)
          return EtcdTransaction.Operation.put(
            key: mailboxKeys.entry(entry), value: try PropertyListValue(0).binaryBytes(),
            lease: session.lease)
        }
        _ = try etcd.client.commit(.init(if: [.exists(mailboxKeys.owner)], then: puts), until: soon)
      }
      try eventually("they are delivered") { others.load(ordering: .relaxed) >= count }
      try eventually("they are deleted") { try etcd.client.read(keys, until: soon).items.isEmpty }
    }
    if fate != .deliveredUnnoticed { try grow() }
    // So that it knows how far the history has come.
    mailbox.catchUp()
    proxy.block()
    try node.endAndRestore()
    let isBack = try !node.client().read(keys, until: soon).items.isEmpty
    #expect(isBack)
    if fate == .deliveredUnnoticed { try grow() }
    proxy.unblock()
    mailbox.catchUp()
    #expect((farEtcd.client.history == 1) == (fate != .deliveredUnnoticed))
    // Until then there may be another one, which the snapshot has brought back.
    let owner = KeyRange.key(MailboxKeys(etcd, mailbox.address).owner)
    try eventually("its mailbox is made again") {
      try etcd.client.read(owner, until: soon).items.first?.lease
        == farEtcd.until(soon).session().lease
    }
    #expect(try outlet.post(3) == .posted)
    try eventually("what is new is delivered") { delivered.withLock { $0.last } == 3 }
    #expect(delivered.withLock { $0 } == before + [3])
  }

  @Test("ends sessions before anything else learns of it")
  func certainty() throws {
    let session = try etcd.until(soon).session()
    try node.endAndSave()
    try grow()
    let moment = try etcd.client.read(.key(etcd.formatKey), until: soon).moment
    let beliefs = Mutex<[Bool]>([])
    let next = Mutex<EtcdSession?>(nil)
    let hasEnded = Atomic(false)
    let handler = session.onEnd { hasEnded.store(true, ordering: .relaxed) }
    let etcd = etcd
    let watch = etcd.client.watch(.key(etcd.formatKey), after: moment) { news in
      guard case .ended = news else { return }
      let belief = session.isAlive || session.isCertain || session.limits.stop > .now
      beliefs.withLock { $0.append(belief) }
      do {
        let new = try etcd.until(soon).session()
        next.withLock { $0 = new }
      } catch {
        Issue.record(error)
      }
    }
    try node.endAndRestore()
    try eventually("the next session is alive") { next.withLock { $0?.isAlive } == true }
    #expect(beliefs.withLock { $0 } == [false])
    try eventually("its users learn of the end") { hasEnded.load(ordering: .relaxed) }
    #expect(try etcd.client.lifetime(ofLease: session.lease, until: soon) == nil)
    withExtendedLifetime((watch, handler)) {}
  }

  @Test("leaves nobody with a session that was made while it happened")
  func making() throws {
    let isMade = Atomic(false)
    let far = Mutex<EtcdContainer?>(nil)
    let node = node
    let proxy = try LossyProxy(to: node.endpoint) { path in
      guard path == "/v3/lease/grant", !isMade.exchange(true, ordering: .relaxed) else { return }
      do {
        try node.endAndRestore()
        // By this the process notices it.
        if let far = far.withLock({ $0 }) {
          _ = try far.client.read(.key(far.formatKey), until: soon)
        }
      } catch {
        Issue.record(error)
      }
    }
    let (container, etcd) = try self.far(proxy)
    try node.endAndSave()
    far.withLock { $0 = etcd }
    try container.value("growth").replace(with: 1)
    let session = try etcd.until(soon).session()
    let hasEnded = Atomic(false)
    let handler = session.onEnd { hasEnded.store(true, ordering: .relaxed) }
    try eventually("it is noticed") { etcd.client.history == 1 }
    try eventually("its session is of the next history, or has ended") {
      session.history == 1 || hasEnded.load(ordering: .relaxed)
    }
    withExtendedLifetime(handler) {}
  }
}
