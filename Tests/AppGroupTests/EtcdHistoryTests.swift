import AppGroup
import Dispatch
import EtcdClient
import PropertyLists
import Synchronization
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import Calls
@testable import Containers
@testable import Presences
@testable import Queues
@testable import Values

/// What follows, in a process that lives on, when the cluster is restored from a snapshot.
@Suite("A restored etcd", .blocking, .enabled(if: !EtcdNode.isMissing))
struct EtcdHistoryTests {
  private let directory: TemporaryDirectory
  private let node: EtcdNode
  private let container: SharedContainer
  private let etcd: EtcdContainer

  init() throws {
    directory = try TemporaryDirectory()
    node = try EtcdNode()
    container = try Self.container(on: node, directory)
    guard case .etcd(let etcd) = container.engine else { throw Errno.invalidArgument }
    self.etcd = etcd
  }

  /// - Parameter lifetime: Containers of different ones share nothing in a process.
  private static func container(
    on node: EtcdNode, _ directory: TemporaryDirectory, lifetime: Int = 5
  ) throws -> SharedContainer {
    var location = EtcdLocation(endpoints: [node.endpoint], prefix: "test")
    location.lifetime = .seconds(lifetime)
    return try SharedContainer(etcd: location, companion: directory.path)
  }

  private func other() throws -> SharedContainer {
    try Self.container(on: node, directory, lifetime: 7)
  }

  /// Lets the history grow, so that the next one is shorter for the rest of a test.
  private func grow() throws {
    for number in 0..<100 { try container.value("growth").replace(with: PropertyListValue(number)) }
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
    try eventually("the value of now is told") { seen.withLock { $0.last } == "kept" }
    let before = heard.load(ordering: .relaxed)
    try other().value("v").replace(with: "new")
    try other().notification("n").post()
    let late = try other().presence("p").enter()
    try eventually("what follows is told, too") {
      seen.withLock { $0.last } == "new" && heard.load(ordering: .relaxed) > before
        && people.withLock { $0.contains(late.id) }
    }
    try eventually("doctor says it") { try container.report().cluster?.replacement != nil }
    let replaced = try #require(try container.report().cluster?.replacement)
    #expect(replaced.known > replaced.found && replaced.host == Program.hostName)
    withExtendedLifetime((lost, late)) {}
  }

  @Test("takes roles and sessions from their holders, also if it brings them back")
  func holders() throws {
    let presence = container.presence("p")
    let (role, guest) = (
      try container.presence("role").enterExclusively(until: soon), try presence.enter()
    )
    let loss = Mutex<AppGroupError?>(nil)
    role.onLoss { error in loss.withLock { $0 = error } }
    let session = try #require(role.session)
    try node.endAndSave()
    try grow()
    try role.confirm()
    try node.endAndRestore()
    // What is done each half minute.
    #expect(etcd.followers.checkAll())
    try eventually("the loss is told") { loss.withLock { $0 } != nil }
    #expect(loss.withLock { $0 }?.code == .leaseLost)
    try eventually("it is lost") {
      do {
        try role.confirm()
        return false
      } catch let error as AppGroupError {
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

  @Test("lets consumers go on, which mark what they had before, and whose claims are lost")
  func consumers() throws {
    let queue = container.queue("q")
    let sender = try other().queue("q").sender("a")
    for number in 0..<3 { try sender.enqueue(PropertyListValue(number)) }
    let consumer = try queue.consume()
    let claimed = try #require(try consumer.next(until: soon))
    try node.endAndSave()
    let ended = try #require(try consumer.next(until: soon))
    try ended.acknowledge()
    try grow()
    try node.endAndRestore()
    // Until its key has ended, the claim that the snapshot has brought back holds.
    let keys = try #require(queue.store as? EtcdQueue)
    try eventually("its right has ended") {
      try keys.read([keys.range("c/")], until: soon).items[0].isEmpty
    }
    #expect(etcd.client.history == 1)
    let error = #expect(throws: AppGroupError.self) { try claimed.acknowledge() }
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
    /// It ends with the session of its mailbox.
    case ended
  }

  @Test("brings no message back into a mailbox", arguments: Fate.allCases)
  func mailboxes(_ fate: Fate) throws {
    let proxy = try LossyProxy(to: node.endpoint)
    let location = EtcdLocation(endpoints: [proxy.endpoint], prefix: "test")
    let far = try SharedContainer(etcd: location, companion: directory.path)
    guard case .etcd(let farEtcd) = far.engine else { throw Errno.invalidArgument }
    let delivered = Mutex<[PropertyListValue]>([])
    let mailbox = try Mailbox(in: far) { value in delivered.withLock { $0.append(value) } }
    defer { mailbox.close() }
    let outlet = try #require(MailboxOutlet(in: container, to: mailbox.address))
    let session = try farEtcd.session(until: soon)
    proxy.block()
    #expect(try outlet.post(1) == .posted)
    try node.endAndSave()
    if fate == .ended {
      try etcd.client.revokeLease(session.lease, until: soon)
      // Otherwise the watch would tell of the message all the same.
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
        == farEtcd.session(until: soon).lease
    }
    #expect(try outlet.post(3) == .posted)
    try eventually("what is new is delivered") { delivered.withLock { $0.last } == 3 }
    #expect(delivered.withLock { $0 } == before + [3])
  }

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
    let other = try other()
    let key = etcd.key(.value, "x")
    let client = node.client()
    while try Int64(client.read(.key(key), until: soon).revision) < Int64(known.revision) - 1 {
      try other.value("growth").replace(with: 0)
    }
    try other.value("x").replace(with: 20)
    #expect(try client.read(.key(key), until: soon).items.first?.modified == Int64(known.revision))
    try value.update { $0 = .integer(($0?.int64Value ?? 0) + 1) }
    #expect(try other.value("x").read() == 21)
    #expect(try !value.compareAndSet(known, 7))
    #expect(etcd.client.history == 0, "nothing could show it")
  }
}
