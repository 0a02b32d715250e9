import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeEtcd

/// What only happens between machines: sessions that end, and processes that are fenced.
@Suite(
  "On etcd", .blocking,
  .enabled(if: TestEngine.available.contains(.etcd), "there is no etcd here"))
struct EtcdPresenceTests {
  /// After a death its session still lasts for its lifetime; etcd looks for ended ones twice a second,
  /// and the rest is for a busy machine.
  private static let lifetime: Duration = .seconds(2)
  private static let margin: Duration = .seconds(8)

  let directory: TemporaryDirectory
  let location: EtcdLocation
  let container: SharedContainer
  let etcd: EtcdContainer
  let presence: Presence

  init() throws {
    directory = try TemporaryDirectory()
    location = try #require(
      try TestEngine.etcd.location(of: directory.path, lifetime: Self.lifetime))
    container = try SharedContainer(etcd: location, companion: directory.path)
    guard let etcd = container.engine as? EtcdContainer else { throw NeverHappened(what: "etcd") }
    self.etcd = etcd
    presence = container.presence("p")
  }

  private var arguments: [String] { [location.description + "?ttl=2"] }
  private var environment: [String] { ["XDG_STATE_HOME=\(directory.path)/state"] }

  private func participant() throws -> Participant {
    try Participant(
      program: BuiltProgram.path("participant"), arguments, environment: environment)
  }

  private func keys(_ part: String) throws -> [KeyValue] {
    try etcd.client.read(.prefix(etcd.key(.presence, "p", part: "/" + part)), until: soon).items
  }

  private func endSession() throws {
    let session = try etcd.until(soon).session()
    try etcd.client.revokeLease(session.lease, until: soon)
  }

  @Test("the death of a process is reported when its session has ended")
  func death() throws {
    let a = try participant()
    let id = try a.ask("enter p")
    let seen = Mutex<[String]?>(nil)
    let observation = try presence.observe(startsWithCurrent: true, on: .global()) { members in
      seen.withLock { $0 = members.map(\.id) }
    }
    defer { observation.cancel() }
    try eventually("it is reported") { seen.withLock { $0 } == [id] }
    #expect(try presence.members().first?.host == Program.hostName)
    try a.end()
    try eventually("its death is reported", within: Self.lifetime + Self.margin) {
      seen.withLock { $0 } == []
    }
    guard case .gone(let last, ended: nil) = try presence.status() else {
      Issue.record("\(try presence.status())")
      return
    }
    #expect(last?.id == id)
  }

  // One that lingers hears that its session has ended, and has no reason to begin another one.
  @Test("a process that exits ends its session at once", arguments: ["", "linger p\n"])
  func exit(first: String) throws {
    let program = try BuiltProgram.path("participant")
    let child = try ChildProcess(
      "sh", ["-c", "printf '\(first)enter p\n' | '\(program)' '\(arguments[0])'"],
      environment: environment + Program.environment)
    #expect(try child.wait(until: soon) == .exited(0))
    #expect(try keys("m/").isEmpty)
    #expect(try keys("last").count == 1)
  }

  @Test("a process that was stopped for longer than its session is fenced, and names its successor")
  func fenced() throws {
    let a = try participant()
    _ = try a.ask("alone p")
    try a.send(.stop)
    try a.waitUntilStopped()
    let registration = try presence.enterExclusively(
      overtaking: .nobody, until: .now + Self.lifetime + Self.margin)
    #expect(try presence.members().map(\.id) == [registration.id])
    try a.send(.continue)
    let answer = try a.ask("confirm p")
    #expect(answer.hasPrefix("error leaseLost"), "\(answer)")
    #expect(answer.contains("process \(Program.processID) "), "\(answer)")
    try registration.confirm()
  }

  // Activating a session waits a quarter of a second, and the first answer once took longer.
  @Test("a stopped process is overtaken, although etcd has answered only after the deadline")
  func lateAnswer() throws {
    let a = try participant()
    _ = try a.ask("alone p")
    try a.send(.stop)
    try a.waitUntilStopped()
    let deadline = ContinuousClock.now + .milliseconds(20)
    let record = PresenceRecord(isExclusive: true, content: nil, host: Program.hostName)
    let entry = presence.store.exclusiveEntry(
      record, .suspended, until: deadline, isGone: nil)
    try eventually("the deadline has passed") { ContinuousClock.now > deadline }
    let hold = try entry.run()
    #expect(try presence.members().map(\.id) == [record.id])
    hold.end(asDeath: false)
  }

  @Test("a process whose role another had for a moment has lost it, although nobody has it now")
  func lostMeanwhile() throws {
    let a = try participant()
    _ = try a.ask("alone p")
    try a.send(.stop)
    try a.waitUntilStopped()
    try presence.enterExclusively(overtaking: .nobody, until: .now + Self.lifetime + Self.margin)
      .close()
    try a.send(.continue)
    let answer = try a.ask("confirm p")
    #expect(answer.hasPrefix("error leaseLost"), "\(answer)")
    #expect(try presence.members() == [])
  }

  @Test("a registration enters again when its session has ended, if nobody had its role")
  func entersAgain() throws {
    let plain = try presence.enter(content: "a")
    let exclusive = try presence.enterExclusively(content: "b")
    let first = exclusive.fence.proof.conditions
    try endSession()
    try eventually("they are there again") {
      try presence.members().map(\.id).sorted() == [plain.id, exclusive.id].sorted()
    }
    try exclusive.confirm()
    try plain.confirm()
    #expect(exclusive.fence.proof.conditions != first)
    let error = #expect(throws: WormholeError.self) { try presence.enterExclusively(until: .now) }
    #expect(error?.code == .timedOut)
    plain.close()
    exclusive.close()
    #expect(try presence.members() == [])
  }

  /// ```
  /// holder                      successor
  /// cut off                     waits
  /// learns of the loss
  ///                             enters
  /// ```
  @Test("a holder that is cut off learns of its loss before another can enter, and asks nobody")
  func learnsInTime() throws {
    let (proxy, other) = try lossy(0)
    let order = Mutex<[String]>([])
    let role = try other.presence("p").enterExclusively()
    role.onLoss { error in
      order.withLock { $0.append("\(error.code)") }
    }
    let deadline = try #require(role.deadline)
    try eventually("etcd is heard again") { (role.deadline ?? deadline) > deadline }
    proxy.block()
    let successor = try presence.enterExclusively(
      overtaking: .nobody, until: .now + Self.lifetime + Self.margin)
    order.withLock { $0.append("entered") }
    #expect(order.withLock { $0 } == ["leaseLost", "entered"])
    #expect(try #require(role.deadline) <= .now)
    // At once for one that asks later.
    role.onLoss { _ in order.withLock { $0.append("again") } }
    try eventually("it is reported") { order.withLock { $0.last } == "again" }
    withExtendedLifetime(successor) {}
  }

  @Test("a transaction with the fence of a registration changes nothing after its end")
  func fence() throws {
    let a = try participant()
    let registration = try presence.enterExclusively()
    let key = etcd.key(.value, "guarded")
    func change() throws -> Bool {
      try etcd.client.commit(
        EtcdTransaction(
          if: registration.fence.proof.conditions, then: [.put(key: key, value: [1])]),
        until: soon
      ).succeeded
    }
    #expect(try change())
    let old = registration.fence.proof.conditions
    try a.tell("alone p 30")
    try endSession()
    // The faster one has the role.
    let isFaster = try a.answer().hasPrefix("error") == false
    if isFaster {
      let error = #expect(throws: WormholeError.self) { try registration.confirm() }
      #expect(error?.code == .leaseLost)
      #expect(error?.holder?.processID == a.processID)
    }
    #expect(
      try !etcd.client.commit(
        EtcdTransaction(if: old, then: [.put(key: key, value: [2])]), until: soon
      ).succeeded)
  }

  @Test("leaving is reported with its time, and leaves only who was last")
  func leaves() throws {
    let registration = try presence.enterExclusively()
    registration.close()
    guard case .gone(let last, let ended) = try presence.status() else {
      Issue.record("\(try presence.status())")
      return
    }
    #expect(last?.id == registration.id)
    #expect(ended != nil)
    #expect(try keys("m/").isEmpty)
    #expect(try keys("x").isEmpty)
    let error = #expect(throws: WormholeError.self) { try registration.confirm() }
    #expect(error?.code == .invalidToken)
  }

  @Test("what is no registration is nobody, and a role without one is free")
  func foreign() throws {
    func put(_ part: String, _ value: [UInt8]) throws {
      _ = try etcd.client.commit(
        EtcdTransaction(
          if: [.absent(etcd.key(.presence, "p", part: "/" + part))],
          then: [.put(key: etcd.key(.presence, "p", part: "/" + part), value: value)]), until: soon)
    }
    try put("m/1-2", [1, 2, 3])
    try put("m/", [])
    try put("x", Array(repeating: 0xFF, count: 100_000))
    try put("last", [0])
    #expect(try presence.members() == [])
    #expect(try presence.status() == .gone(last: nil, ended: nil))
    let registration = try presence.enterExclusively(until: .now)
    #expect(try presence.members().map(\.id) == [registration.id])
    try registration.confirm()
  }

  @Test("new names are reported, and nothing else")
  func names() throws {
    let count = Mutex(0)
    let watch = try container.own.watchPresenceNames { count.withLock { $0 += 1 } }
    defer { watch.cancel() }
    let a = try container.own.presence("a").enter()
    try eventually("it is reported") { count.withLock { $0 } == 1 }
    a.close()
    try container.own.presence("a").enter().close()
    try container.own.presence("b").enter().close()
    try eventually("it is reported") { count.withLock { $0 } >= 2 }
    #expect(count.withLock { $0 } == 2)
    #expect(try container.own.presenceNames().sorted() == ["a", "b"])
  }

  @Test("an etcd that does not answer is named within the deadline")
  func unreachable() throws {
    let node = try EtcdNode()
    var location = EtcdLocation(endpoints: [node.endpoint], prefix: "gone")
    location.lifetime = Self.lifetime
    let container = try SharedContainer(etcd: location, companion: directory.path + "/companion")
    let presence = container.presence("p")
    try presence.enter().close()
    node.end()
    let start = ContinuousClock.now
    let error = #expect(throws: WormholeError.self) {
      try presence.enterExclusively(until: .now + .seconds(1))
    }
    #expect(error?.code == .clusterUnreachable)
    #expect(error?.reason.contains(node.endpoint) == true, "\(error?.reason ?? "")")
    #expect(ContinuousClock.now - start < .seconds(8))
  }

  // MARK: Answers that are lost

  /// The container of the test, behind a proxy that loses answers.
  private func lossy(_ share: Int) throws -> (LossyProxy, SharedContainer) {
    let proxy = try LossyProxy(to: EtcdNode.shared.get().endpoint, losingOneIn: share)
    var location = EtcdLocation(endpoints: [proxy.endpoint], prefix: location.prefix)
    location.lifetime = Self.lifetime
    return (proxy, try SharedContainer(etcd: location, companion: directory.path + "/lossy"))
  }

  @Test("a lost answer neither doubles a registration nor leaves one behind")
  func lostEntries() throws {
    let (proxy, other) = try lossy(3)
    let presence = other.presence("p")
    for _ in 0..<6 {
      let plain = try presence.enter()
      let exclusive = try presence.enterExclusively(until: soon)
      #expect(try self.presence.members().map(\.id) == [plain.id, exclusive.id])
      try exclusive.confirm()
      plain.close()
      exclusive.close()
      #expect(try self.presence.members() == [])
    }
    #expect(proxy.lost > 6)
    #expect(try keys("x").isEmpty)
  }

  @Test("a copy of an entry that comes after its end, because its answer was lost, enters nobody")
  func lateCopy() throws {
    let (proxy, other) = try lossy(2)
    var registration: PresenceRegistration?
    while proxy.lost == 0 {
      registration?.close()
      registration = try other.presence("p").enter()
    }
    let late = try #require(registration)
    let item = try #require(try keys("m/\(late.id)").first)
    late.close()
    #expect(try presence.members() == [])
    let copy = EtcdTransaction(
      if: [.absent(item.key)], then: [.put(key: item.key, value: item.value, lease: item.lease)])
    do throws(EtcdError) {
      #expect(try !etcd.client.commit(copy, until: soon).succeeded)
    } catch {
      // Its session has ended by now, which is as good.
      #expect(error.code == .leaseGone)
    }
    #expect(try presence.members() == [])
  }

  @Test("an entry whose answer is lost is delivered once, and in its order")
  func lostPosts() throws {
    let delivered = Mutex<[PropertyListValue]>([])
    let mailbox = try container.makeMailbox { value in delivered.withLock { $0.append(value) } }
    let (proxy, other) = try lossy(3)
    let outlet = try #require(other.mailboxWriter(to: mailbox.address))
    let all = (0..<60).map { PropertyListValue($0) }
    for number in all { #expect(try outlet.post(number) == .posted) }
    mailbox.catchUp()
    #expect(delivered.withLock { $0 } == all)
    #expect(proxy.lost > 15)
    mailbox.end(asDeath: false)
    // Without an answer it would not be known whether the mailbox got it before its end.
    proxy.lose(oneIn: 1)
    let inDoubt = #expect(throws: WormholeError.self) {
      try outlet.post(1, until: .now)
    }
    #expect(inDoubt?.code == .outcomeUnknown)
    proxy.lose(oneIn: 0)
    #expect(try outlet.post(1) == .gone)
  }

  // MARK: Mailboxes

  @Test("a mailbox whose session has ended is made again under its address")
  func mailboxAgain() throws {
    let delivered = Mutex<[PropertyListValue]>([])
    let mailbox = try container.makeMailbox { value in delivered.withLock { $0.append(value) } }
    let outlet = try #require(container.mailboxWriter(to: mailbox.address))
    #expect(try outlet.post(1) == .posted)
    try eventually("it is delivered") { delivered.withLock { $0 } == [1] }
    let ended = Mutex(0)
    let end = try container.callingEngine.observeEnd(ofMailbox: mailbox.address) {
      ended.withLock { $0 += 1 }
    }
    let session = try etcd.until(soon).session()
    try etcd.client.revokeLease(session.lease, until: soon)
    try eventually("its end is reported") { ended.withLock { $0 } == 1 }
    try eventually("it is there again") { try outlet.post(2) == .posted }
    try eventually("it is delivered") { delivered.withLock { $0 } == [1, 2] }
    let keys = MailboxKeys(etcd, mailbox.address)
    try eventually("what was delivered is deleted") {
      try etcd.client.read(keys.entries, until: soon).items.isEmpty
    }
    withExtendedLifetime(end) {}
  }

  @Test("the end of a killed process's mailbox is reported when its session has ended")
  func mailboxDeath() throws {
    let a = try participant()
    let address = try String(a.ask("mailbox-make 1").dropFirst("address ".count))
    let outlet = try #require(container.mailboxWriter(to: address))
    #expect(try outlet.post(1) == .posted)
    let ended = Mutex(0)
    let end = try container.callingEngine.observeEnd(ofMailbox: address) {
      ended.withLock { $0 += 1 }
    }
    #expect(end != nil)
    try a.end()
    try eventually("its end is reported", within: Self.lifetime + Self.margin) {
      ended.withLock { $0 } == 1
    }
    #expect(try outlet.post(2) == .gone)
    #expect(try container.callingEngine.observeEnd(ofMailbox: address) {} == nil)
  }
}
