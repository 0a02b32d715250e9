import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

@Suite("A lease on etcd", .blocking, .needsEtcd)
struct EtcdSessionTests {
  private let directory: TemporaryDirectory
  private let node: EtcdNode

  init() throws { (directory, node) = (try TemporaryDirectory(), try EtcdNode()) }

  private func container(
    _ endpoint: String? = nil, lifetime: Duration = .seconds(60)
  ) throws -> SharedContainer {
    var location = EtcdLocation(endpoints: [endpoint ?? node.endpoint], prefix: "test")
    location.lifetime = lifetime
    return try SharedContainer(etcd: location, companion: directory.path)
  }

  private func etcd(_ container: SharedContainer) throws -> EtcdContainer {
    try #require(container.engine as? EtcdContainer)
  }

  // libdispatch has no more threads than 255.
  @Test("is renewed, and its end reported, while many calls of the process block", .ownProcess)
  func manyCalls() throws {
    let end = DispatchSemaphore(value: 0)
    let begun = Atomic(0)
    for _ in 0..<600 {
      Blocking.queue().async {
        begun.add(1, ordering: .relaxed)
        end.wait()
      }
    }
    try eventually("no thread is left") { begun.load(ordering: .relaxed) > 200 }
    let session = try etcd(container(lifetime: .seconds(12))).session()
    let hasEnded = Atomic(false)
    let handler = session.onEnd { hasEnded.store(true, ordering: .relaxed) }
    let stop = session.limits.stop
    try eventually("it is renewed") { session.limits.stop > stop }
    session.end()
    try eventually("its end is reported") { hasEnded.load(ordering: .relaxed) }
    withExtendedLifetime(handler) {}
    for _ in 0..<600 { end.signal() }
  }

  @Test("is renewed on another connection when one is silent", .waiting)
  func silentConnection() throws {
    let proxy = try LossyProxy(to: node.endpoint)
    let container = try container(proxy.endpoint, lifetime: .seconds(24))
    let role = try container.presence("p").enterExclusively()
    let isLost = Atomic(false)
    role.onLoss { _ in isLost.store(true, ordering: .relaxed) }
    let deadline = try #require(role.deadline)
    proxy.silence()
    try eventually("it is renewed") { role.deadline.map { $0 > deadline } ?? true }
    let wasLost = isLost.load(ordering: .relaxed)
    #expect(!wasLost)
    // It counts from when the answered one was sent: half of the lifetime for the first, an eighth more
    // for the next.
    #expect(try #require(role.deadline) - deadline > .seconds(14))
    role.close()
  }

  @Test("of a replaced value goes on for the keys of other programs that hang on it")
  func sharedLease() throws {
    let container = try container()
    let value = container.value("x")
    let client = try etcd(container).client
    try value.replace(with: 1)
    let key = try #require(value.store as? EtcdValue).key
    let other = Array("other/leader".utf8)
    let lease = try client.grantLease(lifetime: .seconds(600), until: soon)
    let old = try #require(try client.read(.key(key), until: soon).items.first)
    _ = try client.commit(
      EtcdTransaction(
        if: old.unchanged,
        then: [
          .put(key: key, value: old.value, lease: lease),
          .put(key: other, value: [1], lease: lease),
        ]), until: soon)
    // Its own lease is retired after that of the other program, and revoked after it.
    try self.container().value("x").replace(with: 2, expiresAfter: .seconds(600))
    let own = try #require(try client.read(.key(key), until: soon).items.first?.lease)
    try self.container().value("x").replace(with: 3)
    try eventually("its own lease has ended") {
      try client.lifetime(ofLease: own, until: soon) == nil
    }
    #expect(try client.read(.key(other), until: soon).items.count == 1)
  }

  @Test("that etcd has ended keeps no file from being sent")
  func endedLease() throws {
    let container = try container()
    let sender = try container.queue("q").sender("a")
    _ = try sender.stage("x", bytes: 3)
    let session = try etcd(container).session()
    try etcd(container).client.revokeLease(session.lease, until: soon)
    _ = try sender.stage("y", bytes: 3)
  }
}
