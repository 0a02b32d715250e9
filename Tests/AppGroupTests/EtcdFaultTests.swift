import AppGroup
import Dispatch
import PropertyLists
import SystemCalls
import TestScopes
import TestSupport
import Testing

@Suite(
  "Containers on a faulty etcd", .blocking,
  .disabled(if: EtcdNode.isMissing, "etcd is not installed"))
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

  @Test("say that the database is full, and what to do")
  func full() throws {
    let node = try EtcdNode(flags: ["--quota-backend-bytes", "200000"])
    let value = try container(node.endpoint).value("x")
    let large = PropertyListValue.string(String(repeating: "x", count: 150_000))
    do {
      // The size that counts is that of what etcd has written out, now and then.
      for _ in 0..<100 { try value.replace(with: large) }
      Issue.record("the database has a quota")
    } catch let error as AppGroupError {
      #expect(error.code == .noSpace, "\(error)")
      #expect("\(error)".contains("compact it"))
    }
    // What is there can be read.
    _ = try value.read()
  }
}
