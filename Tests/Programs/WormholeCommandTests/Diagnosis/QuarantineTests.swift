import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd
@testable import WormholeInspection

@Suite("A newer value is never put into quarantine", .blocking)
struct QuarantineTests {
  @Test("A process whose lease was taken over leaves the new value in its place")
  func overtaken() throws {
    let directory = try TemporaryDirectory()
    let value = try directory.container().value("seats")
    try value.replace(with: 1)
    // Given: a process is about to put the value aside, is suspended, and loses its lease to
    // another process, which publishes 2.
    try Change<Void>(value.directory, .init(until: .now + .seconds(10))) { lease, _ in
      try lease.site.takeOver(lease.held, from: nil)
      try value.replace(with: 2)
      // When it is continued, then it gets an error.
      let error = #expect(throws: WormholeError.self) {
        try value.putAside(value.fileName, lease)
      }
      #expect(error?.code == .leaseLost)
      // The same for a process that had found a directory there.
      #expect(throws: Errno.notDirectory) {
        try Quarantine.take(
          FileName(value.fileName + "/"), at: try lease.site.directory(),
          root: value.container.root)
      }
    }.run()
    #expect(try value.read() == 2)
  }

  @Test("The value is absent afterwards, and its bytes are kept")
  func kept() throws {
    let directory = try TemporaryDirectory()
    let value = try directory.container().value("seats")
    #expect(try value.quarantine() == nil)
    try value.replace(with: "kept")
    let path = try #require(try value.quarantine())
    #expect(try value.read() == nil)
    let bytes = try FileDescriptor.open(path, .readOnly)
      .readToEnd(expectedBytes: 0, maximumBytes: 1_000)
    #expect(try PropertyListValue(bytes: bytes) == "kept")
    #expect(path.hasPrefix(directory.path + "/quarantine/"))
  }
}

@Suite("A trial of writing", .blocking)
struct WritingTrialTests {
  #if DEBUG
    @Test("reports that a quota is used up, and leaves nothing")
    func quota() throws {
      let directory = try TemporaryDirectory()
      let container = try directory.container()
      let before = directory.listing
      try container.tryWriting()
      for call in [SystemCall.openat, .write, .mkdirat] {
        let plan = Faults.Plan { found, _ in found == call ? .fail(.diskQuotaExceeded) : .proceed }
        let error = #expect(throws: WormholeError.self) {
          try Faults.$plan.withValue(plan) { try container.tryWriting() }
        }
        #expect(error?.code == .noSpace && error?.remedy?.contains("quota") == true, "\(call)")
      }
      #expect(directory.listing == before)
    }
  #endif

  @Test(
    "changes nothing on etcd, and reports that its quota is used up",
    .needsEtcd)
  func etcd() throws {
    let node = try EtcdNode()
    let directory = try TemporaryDirectory()
    let container = try SharedContainer(
      etcd: EtcdLocation(endpoints: [node.endpoint], prefix: "test"), companion: directory.path)
    try container.value("k").replace(with: 1)
    let before = try node.ask("kv/range", #"{"key":"AA==","range_end":"AA=="}"#)
    try container.tryWriting()
    let after = try node.ask("kv/range", #"{"key":"AA==","range_end":"AA=="}"#)
    #expect(before.hasSuffix(after.suffix(200)), "no revision was made")
    _ = try node.ask("maintenance/alarm", #"{"action":"ACTIVATE","alarm":"NOSPACE"}"#)
    let error = #expect(throws: WormholeError.self) { try container.tryWriting() }
    #expect(error?.code == .noSpace, "\(String(describing: error))")
  }
}
