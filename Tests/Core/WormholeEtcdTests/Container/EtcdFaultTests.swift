import Dispatch
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

@Suite(
  "Containers on a faulty etcd", .blocking,
  .needsEtcd)
struct EtcdFaultTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func container(_ endpoint: String) throws -> SharedContainer {
    try SharedContainer(
      etcd: EtcdLocation(endpoints: [endpoint], prefix: "test" + directory.path),
      companion: directory.path)
  }

  @Test("count each update once, though every twentieth answer is lost")
  func lostAnswers() throws {
    let proxy = try LossyProxy(to: EtcdNode.shared.get().endpoint, losingOneIn: 20)
    let container = try container(proxy.endpoint)
    DispatchQueue.concurrentPerform(iterations: 2) { _ in
      do {
        for _ in 0..<250 {
          try container.value("x").update { $0 = .integer(($0?.int64Value ?? 0) + 1) }
        }
      } catch {
        Issue.record(error)
      }
    }
    let direct = try self.container(try EtcdNode.shared.get().endpoint)
    #expect(try direct.value("x").read()?.int64Value == 500)
    // Each update takes a transaction at least.
    #expect(proxy.lost >= 25)
  }

  /// What happened to a key between a change whose answer was lost and the look at it.
  enum Meanwhile: CaseIterable {
    case nothing, overwritten, compactedBefore, compactedAtOnce, compactedLater
  }

  @Test(
    "find out what became of a change, as long as etcd's history shows it",
    arguments: Meanwhile.allCases)
  func commitRecords(_ meanwhile: Meanwhile) throws {
    let node = try EtcdNode()
    let proxy = try LossyProxy(to: node.endpoint, losingOneIn: 2)
    guard let etcd = try container(proxy.endpoint).engine as? EtcdContainer else {
      throw Errno.invalidArgument
    }
    let direct = node.client()
    let key = etcd.key(.value, "x")
    func put(_ byte: UInt8, _ name: String = "x") throws -> Int64 {
      let key = etcd.key(.value, name)
      let always = EtcdTransaction.Condition.version(of: key, -1, is: .greater)
      let change = EtcdTransaction(if: [always], then: [.put(key: key, value: [byte])])
      return try direct.commit(change, until: soon).revision
    }
    func compact(_ revision: Int64) throws {
      try node.ask("kv/compaction", "{\"revision\": \"\(revision)\"}")
    }
    let base = KeyValue(
      key: key, value: [1], created: 0, modified: try put(1), version: 0, lease: 0)
    for byte in 0..<3 { _ = try put(UInt8(byte), "another") }
    // The change itself, whose answer was lost: what `commit` sends is refused from now on.
    let changed = try put(2)
    if meanwhile != .nothing { _ = try put(3) }
    switch meanwhile {
    case .nothing, .overwritten: break
    case .compactedBefore: try compact(changed - 1)
    case .compactedAtOnce: try compact(changed)
    case .compactedLater: try compact(changed + 1)
    }
    // The answers are counted in pairs, of which the second is lost.
    if proxy.answers.isMultiple(of: 2) {
      _ = try etcd.until(soon).repeating(.init(if: [], then: []))
    }
    let change = Result { () throws(EtcdError) in
      try etcd.until(soon).commit(
        .init(if: [], then: []), .init(key: key, base: base, value: [2]))
    }
    switch meanwhile {
    case .compactedLater:
      let error = #expect(throws: EtcdError.self) { try change.get() }
      #expect(error?.code == .outcomeUnknown && error?.reason.contains("compacted") == true)
    default:
      #expect(
        try change.get() == .init(succeeded: true, revision: changed, history: 0, results: []))
    }
    #expect(proxy.lost == 1)
  }

  @Test("say that the database is full, and what to do")
  func full() throws {
    let node = try EtcdNode(flags: ["--quota-backend-bytes", "200000"])
    let value = try container(node.endpoint).value("x")
    let large = PropertyListValue.string(longText(150_000))
    do {
      // The size that counts is that of what etcd has written out, now and then.
      for _ in 0..<100 { try value.replace(with: large) }
      Issue.record("the database has a quota")
    } catch let error as WormholeError {
      #expect(error.code == .noSpace, "\(error)")
      #expect("\(error)".contains("compact it"))
    }
    // What is there can be read.
    _ = try value.read()
  }
}
