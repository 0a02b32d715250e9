import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeWorkshop

/// How many requests a command on etcd makes one after another: far away each is a round trip, and a
/// change here is a decision.
@Suite("A command on etcd", .blocking, .needsEtcd)
struct EtcdCommandCostTests {
  private static let steps: Set = ["kv/txn", "kv/range", "kv/put", "lease/grant"]

  private let session: Session
  private let requests = Recorded()
  private let proxy: LossyProxy

  private final class Recorded: Sendable {
    let paths = Mutex<[String]>([])
  }

  init() throws {
    session = try Session()
    proxy = try LossyProxy(to: EtcdNode.shared.get().endpoint) { [requests] path in
      requests.paths.withLock { $0.append(path) }
    }
  }

  /// The requests of a command, without those for which it does not wait.
  private func requests(of command: String, after preparation: String) throws -> [String] {
    let prefix = "etcd://\(proxy.endpoint.dropFirst("http://".count))/test\(session.container)"
    _ = try session.shell("export WORMHOLE_CONTAINER='\(prefix)'; \(preparation)")
    requests.paths.withLock { $0 = [] }
    let outcome = try session.shell("export WORMHOLE_CONTAINER='\(prefix)'; \(command)")
    #expect(outcome.status == 0, "\(outcome)")
    return requests.paths.withLock(\.self)
      .map { $0.split(separator: "/").suffix(2).joined(separator: "/") }
      .filter(Self.steps.contains)
  }

  @Test(
    "takes an entry by four requests: opening, session, taking while it joins, ending as it leaves",
    arguments: ["", " -- cat"])
  func taking(tail: String) throws {
    let found = try requests(of: "wormhole queue take q\(tail)", after: "wormhole queue put q 1")
    #expect(found == ["kv/txn", "lease/grant", "kv/txn", "kv/txn"])
  }

  @Test("appends a message by two requests")
  func appending() throws {
    let found = try requests(of: "wormhole log append l 2", after: "wormhole log append l 1")
    #expect(found == ["kv/txn", "kv/txn"])
  }
}
