import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// What a process asks etcd while nothing changes.
@Suite("The followers of keys on etcd", .blocking, .needsEtcd)
struct EtcdFollowersTests {
  private let directory: TemporaryDirectory
  private let requests = CountedRequests()
  private let etcd: EtcdContainer
  private let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    let location = EtcdLocation(
      endpoints: [try EtcdNode.shared.get().endpoint], prefix: "test" + directory.path)
    etcd = try EtcdContainer.created(location, through: requests)
    container = try SharedContainer(etcd, companion: directory.path + "/here")
  }

  @Test("compare all ranges by one request, and read none that the events explain")
  func quiet() throws {
    let names = (0..<100).map { "x\($0)" }
    for name in names.prefix(50) { try container.value(name).replace(with: 1) }
    let mirrors = try names.map { try EtcdMirror(etcd, range: .key(etcd.key(.value, $0))) { _ in } }
    defer { for mirror in mirrors { mirror.cancel() } }
    let presence = try EtcdMirror(etcd, range: .prefix(etcd.key("p"))) { _ in }
    defer { presence.cancel() }
    try container.value("x7").replace(with: 2)
    try container.value("x77").replace(with: 2)
    for name in ["x7", "x77"] {
      let key = etcd.key(.value, name)
      try eventually("it is heard") {
        try mirrors.contains { try $0.item(key)?.modified == etcd.item(key)?.modified }
      }
    }
    // The first one also asks for the member's version.
    _ = etcd.shared.followers.checkAll(of: etcd.shared)
    for _ in 0..<3 {
      let before = requests.paths
      #expect(etcd.shared.followers.checkAll(of: etcd.shared))
      let isFaulty = EtcdFollowers.losesEvents(
        try etcd.client.status(until: soon).version)
      let new = requests.paths.dropFirst(before.count).filter { !$0.contains("status") }
      // Another one may come from the connection of the watches, which asks every five seconds.
      #expect(new.filter { $0 == "kv/txn" }.count == (isFaulty ? 1 : 0) && new.count <= 2, "\(new)")
    }
  }

  @Test("notice a change, a creation and a deletion that no event has told")
  func lost() throws {
    var heard = HeardChanges(after: .init(history: 0, revision: 10))
    func put(_ revision: Int64, created: Int64) -> EtcdEvent {
      event(.put, revision, created: created)
    }
    func event(_ kind: EtcdEvent.Kind, _ revision: Int64, created: Int64 = 0) -> EtcdEvent {
      EtcdEvent(
        kind: kind,
        keyValue: KeyValue(
          key: [1], value: [], created: created, modified: revision, version: 1, lease: 0))
    }
    func isExplained(_ count: Int64, _ newest: Int64, at moment: EtcdMoment) -> Bool {
      heard.explain(count: count, newest: newest, at: moment)
    }
    func at(_ revision: Int64) -> EtcdMoment { .init(history: 0, revision: revision) }
    #expect(isExplained(2, 9, at: at(11)))
    // A creation, a change and a deletion that were heard.
    heard.take([put(12, created: 12), put(13, created: 12), put(14, created: 14)], of: 0)
    heard.take([event(.delete, 15)], of: 0)
    #expect(isExplained(3, 14, at: at(16)))
    // A change that was not heard.
    #expect(!isExplained(3, 17, at: at(18)))
    heard.know(at(18))
    #expect(isExplained(3, 17, at: at(19)))
    // A deletion that was not heard, nor that it was followed by another key's creation.
    #expect(!isExplained(2, 17, at: at(20)))
    heard.take([put(21, created: 21)], of: 0)
    #expect(!isExplained(2, 21, at: at(22)))
    // Another history.
    #expect(!isExplained(2, 5, at: .init(history: 1, revision: 6)))
  }

  @Test("know which versions of etcd lose events")
  func versions() {
    let faulty = ["3.4.23", "3.4.30", "3.5.0", "3.5.12", "3.3.9", "2.3.8", "", "x"]
    let mended = ["3.4.31", "3.5.13", "3.6.0", "3.5.21", "4.0.0"]
    #expect(faulty.allSatisfy { EtcdFollowers.losesEvents($0) })
    #expect(!mended.contains { EtcdFollowers.losesEvents($0) })
  }
}
