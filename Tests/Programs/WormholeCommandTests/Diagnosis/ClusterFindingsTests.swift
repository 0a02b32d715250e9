import FoundationEssentials
import Testing
import WormholePeers
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeCommand
@testable import WormholeEtcd
@testable import WormholeInspection

@Suite("What doctor finds about a cluster's clocks, watches and versions", .blocking)
struct ClusterFindingsTests {
  private func findings(
    _ change: (inout ContainerReport, inout ClusterReport.Member) -> Void
  ) -> [String] {
    var report = ContainerReport(path: "etcd://h/c")
    var member = ClusterReport.Member(endpoint: "https://h:2379")
    member.clockDifference = .zero
    member.watchDelay = .milliseconds(100)
    change(&report, &member)
    var cluster = ClusterReport()
    cluster.members = [member]
    cluster.hasLeader = true
    cluster.isEncrypted = true
    return ClusterFindings.of(cluster, of: report).map { "\($0.level): \($0.what)" }
  }

  @Test("Clocks differ once it is more than a second")
  func clocks() {
    #expect(findings { _, _ in }.isEmpty)
    #expect(findings { $1.clockDifference = nil }.isEmpty)
    #expect(findings { $1.clockDifference = .seconds(-1) }.isEmpty)
    let ahead = findings { $1.clockDifference = .seconds(7.5) }
    #expect(ahead.count == 1 && ahead[0].contains("warning: This machine's clock is 7 s or more"))
    #expect(ahead.first?.contains("ahead of that of the member") == true)
    let behind = findings { $1.clockDifference = .seconds(-90) }
    #expect(behind.first?.contains("90 s or more behind that of the member") == true, "\(behind)")
  }

  @Test("What a member says is within a second of its clock")
  func difference() {
    let cases: [(Double, Double, Int64, Duration)] = [
      (100.2, 100.3, 100, .zero), (100.9, 101.1, 100, .zero), (99.9, 100.1, 100, .zero),
      (101.5, 101.6, 100, .milliseconds(500)), (98.5, 98.75, 100, .milliseconds(-1_250)),
      (90, 110, 100, .zero),
    ]
    for (asked, answered, reported, expected) in cases {
      let found = EtcdClient.difference(
        asked: .seconds(asked), answered: .seconds(answered), reported: reported)
      #expect(found == expected, "\(asked) \(answered)")
    }
  }

  @Test("A publication from the future names its publisher")
  func future() {
    let dated = { (seconds: Double) in
      findings { report, _ in
        var value = ContainerReport.NamedContent(identifier: "a", path: "etcd://h/c v/a")
        let date = Int64((Date().timeIntervalSince1970 + seconds) * 1e9)
        value.publisher = Publisher(
          processID: 7, program: "cinema", peer: nil, nanosecondsSince1970: date)
        report.names.values = [value]
      }
    }
    #expect(dated(0.5).isEmpty && dated(-1_000).isEmpty)
    let found = dated(60)
    #expect(found.count == 1 && found[0].contains("process 7 (cinema)"), "\(found)")
    #expect(dated(5e9).count == 1)
  }

  @Test("A watch that is late or silent is a warning")
  func watches() {
    #expect(findings { $1.watchDelay = nil }.isEmpty)
    let late = findings { $1.watchDelay = .milliseconds(1_500) }
    #expect(late.count == 1 && late[0].contains("took 1500.0 ms"), "\(late)")
    let silent = findings { $1.watchFailure = "no member reported the history of the key in time" }
    #expect(silent.count == 1 && silent[0].contains("reported nothing"), "\(silent)")
  }

  @Test(
    "A version with a known fault is named, with the one that mends it",
    arguments: [
      ("3.4.23", ["note: etcd 3.4.23 may report changes twice"]), ("3.4.31", []), ("3.4.100", []),
      ("3.5.2", ["note: etcd 3.5.2 may report", "warning: etcd 3.5.2 may differ"]),
      ("3.5.12", ["note: etcd 3.5.12 may report"]), ("3.5.13", []), ("3.6.0", []), ("3.5.x", []),
    ])
  func versions(version: String, expected: [String]) {
    let found = findings { $1.version = version }
    #expect(found.count == expected.count, "\(found)")
    for (found, expected) in zip(found, expected) { #expect(found.hasPrefix(expected)) }
    #expect(found.allSatisfy { $0.contains("(mended in 3.") })
  }

  @Test("A member of a running cluster reports its time and the history of a key")
  func running() throws {
    guard TestEngine.available.contains(.etcd) else { return }
    try TestEngine.$current.withValue(.etcd) {
      let container = try TemporaryDirectory().container()
      try container.value("a").replace(with: 1)
      // A report waits for two seconds, which may be too short on a busy machine.
      try eventually("the history is reported") {
        let member = try #require(try container.report().cluster?.members.first)
        #expect(member.clockDifference == .zero)
        return member.watchDelay.map { $0 < .seconds(2) && member.watchFailure == nil } ?? false
      }
    }
  }

  @Test("Leases and keys that pile up are found")
  func piles() {
    func findings(_ leases: Int?, _ keys: Int?) -> [String] {
      var cluster = ClusterReport()
      cluster.isEncrypted = true
      (cluster.leases, cluster.keys) = (leases, keys)
      return ClusterFindings.of(cluster, of: ContainerReport(path: "etcd://h/c")).map(\.what)
    }
    #expect(findings(nil, nil) == [] && findings(10_000, 1_000_000) == [])
    #expect(findings(10_001, 3).first?.contains("has 10001 leases") == true)
    #expect(findings(3, 1_000_001).first?.contains("has 1000001 keys") == true)
  }

  @Test("Containers whose keys are mixed are found from each of them", .needsEtcd)
  func nested() throws {
    let directory = try TemporaryDirectory()
    let endpoint = try EtcdNode.shared.get().endpoint
    let outer = "test" + directory.path
    func container(_ prefix: String) throws -> SharedContainer {
      try SharedContainer(
        etcd: EtcdLocation(endpoints: [endpoint], prefix: prefix), companion: directory.path)
    }
    func nested(_ prefix: String) throws -> [String] {
      try #require(try container(prefix).report().cluster).nested.sorted()
    }
    // A value of this name has the key that a container at its prefix would have.
    try container(outer + "3").value("format").replace(with: 1)
    #expect(try nested(outer + "3") == [])
    try container(outer).value("x").replace(with: 1)
    try container(outer).log("l").append(1)
    #expect(try nested(outer) == [])
    let inner = ["in", "in-1", "v"].map { outer + "/" + $0 }
    for prefix in inner { _ = try container(prefix) }
    #expect(try nested(outer) == inner.sorted())
    #expect(try nested(inner[0]) == [outer])
    // The prefix of another container may begin with the same text, without a slash after it.
    #expect(try nested(outer + "2") == [])
    var cluster = ClusterReport()
    cluster.isEncrypted = true
    cluster.nested = [inner[0]]
    let found = ClusterFindings.of(cluster, of: ContainerReport(path: "etcd://h/c"))
    #expect(found.count == 1 && found[0].what.contains("have keys in common"))
  }

  // They were found in a directory only.
  @Test("Keys of others among the container's are found, and not those beside them", .needsEtcd)
  func foreign() throws {
    let directory = try TemporaryDirectory()
    let location = EtcdLocation(
      endpoints: [try EtcdNode.shared.get().endpoint], prefix: "test" + directory.path)
    let container = try SharedContainer(etcd: location, companion: directory.path)
    try container.value("a").replace(with: 1)
    try container.log("a").append(1)
    try container.notification("a").post()
    try container.notification("a").setState(1)
    try container.queue("a").sender("s").enqueue(1)
    try container.own.value("a").replace(with: 1)
    let peer = try PeerSession("a", in: container)
    try peer.activate()
    try peer.enqueue(1, to: "b")
    #expect(try container.report().foreignEntries.isEmpty)
    let keys = ["own/x", "q", "v/%zz", "v/a/b"].map { "\(location.prefix)/\($0)" }
    let beside = ["notes", "x/y"].map { "\(location.prefix)/\($0)" }
    let client = EtcdClient(try location.configuration(keepingTokenIn: nil))
    for key in keys + beside {
      let bytes = Array(key.utf8)
      let put = EtcdTransaction(if: [.absent(bytes)], then: [.put(key: bytes, value: [1])])
      _ = try client.commit(put, until: .now + .seconds(10))
    }
    let report = try container.report()
    #expect(report.foreignEntries.map(\.path) == keys)
    let found = Findings.of(report, options: "").filter { $0.kind == .foreignEntry }
    #expect(found.map(\.path) == keys && found.last?.command == "etcdctl del \(keys[3])")
  }

  @Test("A history that was replaced is a warning for a week, and then a note")
  func replaced() {
    for (age, level) in [(60.0, "warning"), (8 * 86_400, "note")] {
      var cluster = ClusterReport()
      cluster.isEncrypted = true
      cluster.replacement = .init(
        date: Date(timeIntervalSinceNow: -age), known: 2_600, found: 61, host: "h1")
      let found = ClusterFindings.of(cluster, of: ContainerReport(path: "etcd://h/c"))
      #expect(found.count == 1 && "\(found[0].level)" == level, "\(found)")
      #expect(found.first?.what.contains("revision 61 only, and before to 2600") == true)
    }
  }
}
