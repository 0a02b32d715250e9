import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// What logs promise only on etcd; the rest is in the suite that runs on both engines.
@Suite("A log on etcd", .blocking, .needsEtcd)
struct EtcdLogTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// The log as a process of a machine sees it.
  private func log(_ machine: String, through transport: (any EtcdTransport)? = nil) throws
    -> PlainLog
  {
    let location = EtcdLocation(
      endpoints: [try EtcdNode.shared.get().endpoint], prefix: "test" + directory.path)
    let companion = directory.path + "/" + machine
    guard let transport else {
      return try SharedContainer(etcd: location, companion: companion).log("l")
    }
    return try SharedContainer(
      EtcdContainer.created(location, through: transport), companion: companion
    ).log("l")
  }

  /// A read without time to wait has a second for its answer, which a busy machine may miss.
  private func drain(_ reader: LogReader<PropertyListValue>) throws -> [Int] {
    var all: [Int] = []
    let deadline = ContinuousClock.now + testPatience
    while true {
      do {
        guard let message = try reader.next(until: .now) else { return all }
        all.append(message.payload.intValue ?? -1)
      } catch let error as WormholeError
        where error.code == .clusterUnreachable && ContinuousClock.now < deadline
      {
        continue
      }
    }
  }

  @Test("has no gap and no message twice, though answers are lost and others append")
  func lostAnswers() throws {
    let requests = CountedRequests()
    let (here, there) = (try log("here", through: requests), try log("there"))
    try there.append(-1)
    for number in 0..<20 {
      if number % 3 == 0 { requests.loseNextAnswer(of: "kv/txn") }
      try here.append(PropertyListValue(number))
      if number % 4 == 0 { try there.append(PropertyListValue(100 + number)) }
    }
    let all = try drain(there.read())
    #expect(all.filter { (0..<20).contains($0) } == Array(0..<20))
    #expect(all.filter { $0 >= 100 } == [100, 104, 108, 112, 116])
    #expect(all.count == 26)
    #expect(try there.append(-2) == 27)
  }

  @Test("costs one round trip for a message")
  func roundTrips() throws {
    let requests = CountedRequests()
    let log = try log("here", through: requests)
    try log.append(0)
    let before = requests.paths.count
    for number in 1...5 { try log.append(PropertyListValue(number)) }
    #expect(requests.paths.count - before == 5)
  }

  @Test("is appended to by several writers at once, each message once and in its writer's order")
  func writers() throws {
    let logs = try (0..<3).map { try log("machine\($0)") }
    let failures = Mutex<[any Error]>([])
    DispatchQueue.concurrentPerform(iterations: logs.count) { writer in
      do {
        for number in 0..<10 { try logs[writer].append(PropertyListValue(100 * writer + number)) }
      } catch {
        failures.withLock { $0.append(error) }
      }
    }
    #expect(failures.withLock { $0 }.isEmpty)
    let all = try drain(logs[0].subscribe("a"))
    #expect(all.count == 30)
    for writer in 0..<3 {
      #expect(all.filter { $0 / 100 == writer } == (0..<10).map { 100 * writer + $0 })
    }
  }

  @Test("is replayed from a date, and loses old messages with a sweep")
  func dates() throws {
    let log = try log("here")
    try log.setBounds(.init(messages: 100, bytes: 1 << 20, age: .seconds(3_600)))
    for number in 0..<3 { try log.append(PropertyListValue(number)) }
    let etcd = try #require(log.container.engine as? EtcdContainer)
    // As if the first two had been appended long ago.
    for number in 1...2 {
      let key = EtcdOpenLog.key(number, of: "l", in: etcd)
      let item = try #require(try etcd.item(key))
      var bytes = item.value
      let now = try #require(PublicationRecord.take(from: &bytes)?.publisher)
      let publisher = Publisher(
        processID: now.processID, program: now.program, peer: nil,
        nanosecondsSince1970: now.nanosecondsSince1970 - 7_200_000_000_000)
      let content = PublishedContent(
        try PropertyListValue(number - 1).binaryBytes(),
        PublicationRecord(publisher, base: .unknown, expiry: nil)
      ).bytes
      _ = try etcd.repeating(
        EtcdTransaction(if: item.unchanged, then: [.put(key: key, value: content)]))
    }
    #expect(try drain(log.read(from: .date(Date(timeIntervalSinceNow: -3_600)))) == [2])
    #expect(try drain(log.read(from: .date(Date(timeIntervalSinceNow: -9_000)))) == [0, 1, 2])
    let swept = try log.container.sweep()
    #expect(swept.failures.isEmpty)
    #expect(swept.removed.count == 2 && swept.removed.allSatisfy { $0.contains(" l/l/m/") })
    #expect(try log.read(from: .number(1)).next(until: .now)?.missed == 2)
    #expect(try log.append(9) == 4)
  }

  @Test("passes over what another program has put in place of a message, and says so")
  func hostile() throws {
    let log = try log("here")
    for number in 0..<4 { try log.append(PropertyListValue(number)) }
    let etcd = try #require(log.container.engine as? EtcdContainer)
    func put(_ key: [UInt8], _ value: [UInt8]) throws {
      _ = try etcd.repeating(
        EtcdTransaction(
          if: [.exists(etcd.formatKey)], then: [.put(key: key, value: value)]))
    }
    try put(EtcdOpenLog.key(2, of: "l", in: etcd), Array("bplist00 no".utf8))
    try put(etcd.key(.log, "l", part: "/m/x"), [1])
    try put(etcd.key(.log, "l", part: "/m/ffffffffffffffff"), [1])
    let reader = try log.read()
    #expect(try reader.next(until: .now)?.payload == 0)
    let next = try #require(try reader.next(until: .now))
    #expect(next.payload == 2 && next.unreadable == 1 && next.number == 3)
    #expect(try drain(reader) == [3])
    // A head that is not ours, and a number that is taken: no message is overwritten.
    try put(etcd.key(.log, "l", part: "/h"), Array("no number".utf8))
    #expect(try self.log("there").append(7) == 5)
    try put(EtcdOpenLog.key(6, of: "l", in: etcd), PropertyListValue(8).binaryBytes())
    #expect(try log.append(9) == 7)
    #expect(try drain(log.read()) == [0, 2, 3, 7, 8, 9])
    // A head that no log reaches.
    try put(etcd.key(.log, "l", part: "/h"), Array("0 \(String(LogState.largest, radix: 16))".utf8))
    #expect(try self.log("elsewhere").append(10) == 8)
    #expect(try drain(self.log("elsewhere").read()) == [0, 2, 3, 7, 8, 9, 10])
  }

  // A call without a deadline takes ten seconds.
  @Test("says that etcd does not answer when a reader's deadline has passed, not ten seconds later")
  func deadline() throws {
    let node = try EtcdNode()
    var location = EtcdLocation(endpoints: [node.endpoint], prefix: "test")
    // The session outlives a call that gets no answer.
    location.lifetime = .seconds(60)
    let log = try SharedContainer(etcd: location, companion: directory.path + "/here").log("l")
    try log.append(1)
    let reader = try log.subscribe("a")
    #expect(try reader.next(until: .now)?.payload == 1)
    node.end()
    let start = ContinuousClock.now
    let error = #expect(throws: WormholeError.self) { try reader.next(until: .now) }
    #expect(error?.code == .clusterUnreachable, "\(String(describing: error))")
    #expect(ContinuousClock.now - start < .seconds(8))
  }

  @Test("is reported with its subscribers")
  func report() throws {
    let log = try log("here")
    try log.setBounds(.init(messages: 3, bytes: 1 << 20))
    for number in 0..<5 { try log.append(PropertyListValue(number)) }
    let reader = try log.subscribe("a")
    _ = try reader.next(until: .now)
    let report = try log.container.report()
    let found = try #require(report.names.logs.first)
    #expect(found.name == "l" && found.messages == 3 && found.first == 3 && found.last == 5)
    #expect(found.newest != nil && found.bounds.messages == 3 && found.problem == nil)
    #expect(found.subscribers.map(\.subscriber) == [LogSubscriber(name: "a", next: 3, behind: 3)])
    #expect(found.subscribers.first?.process?.processID == Program.processID)
    #expect(report.failures.isEmpty && report.names.values.isEmpty)
    #expect(try log.container.logNames() == ["l"])
  }
}
