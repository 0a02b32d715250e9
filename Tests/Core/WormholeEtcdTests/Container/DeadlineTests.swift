import Synchronization
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

@Suite("A call with a deadline, while etcd does not answer,", .blocking, .waiting, .needsEtcd)
struct DeadlineTests {
  @Test("ends then, and not ten seconds later, whatever it does")
  func each() throws {
    let directory = try TemporaryDirectory()
    let node = try EtcdNode()
    let container = try SharedContainer(etcd: node.patientLocation, companion: directory.path)
    let value = container.value("v")
    try value.replace(with: 1)
    let snapshots = Mutex(try value.snapshots().makeAsyncIterator())
    let log = container.log("l")
    try log.append(1)
    let reader = try log.subscribe("a")
    let queue = container.queue("q")
    let sender = try queue.sender("a")
    let id = try sender.enqueue(1)
    let consumer = try container.queue("taken").consume()
    let calls = LateCalls([
      "update": { try value.update(until: .now) { $0 = 2 } },
      "update in one step": { try container.update(["v"], until: .now) { $0["v"] = 2 } },
      "observe": { _ = snapshots.withLock { $0.next(until: .now) } },
      "set a state": { try container.notification("n").setState(1, until: .now) },
      "enter": { _ = try container.presence("p").enterExclusively(until: .now) },
      "lock": { try container.mutex("m").withLock(until: .now) { _ in } },
      "cancel": { try sender.cancel(id, until: .now) },
      "cancel all": { try queue.cancelAll(until: .now) },
      "wait for the end": { _ = try sender.finalStatus(of: id, until: .now) },
      "become the consumer": { _ = try container.queue("new").consume(until: .now) },
      "work": { _ = try queue.work(until: .now) },
      "take": { _ = try consumer.next(until: .now) },
      "wait for the first use": { _ = try queue.awaitFirstUse(until: .now, willWait: {}) },
      "append": { try log.append(2, until: .now) },
      "begin a log": { try container.log("new").append(2, until: .now) },
      "set bounds": { try log.setBounds(.standard, until: .now) },
      "subscribe": { _ = try log.subscribe("b", until: .now) },
      "read": { _ = try reader.next(until: .now) },
    ])
    node.end()
    let late = try calls.late()
    #expect(late == [])
  }
}
