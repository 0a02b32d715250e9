import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeEtcd

/// A cluster that is restored from a snapshot: its number stays, and its revisions come a second time.
@Suite(
  "A history that was replaced", .blocking,
  .needsEtcd)
struct HistoryTests {
  private let node: EtcdNode
  private let client: EtcdClient
  private let key = Array("key".utf8)

  init() throws {
    node = try EtcdNode()
    client = node.client { $0.probeInterval = .milliseconds(100) }
  }

  /// Stores a value, whatever there was.
  @discardableResult
  private func set(_ text: String, through client: EtcdClient? = nil) throws -> Int64 {
    try (client ?? self.client).commit(
      EtcdTransaction(
        if: [.version(of: key, -1, is: .greater)], then: [.put(key: key, value: Array(text.utf8))]),
      until: soon
    ).revision
  }

  @Test("ends its watches without a call of anybody, and counts the next history")
  func watches() throws {
    let heard = HeardEvents()
    let first = try set("kept")
    try node.endAndSave()
    _ = client.watch(.key(key), from: first, onNews: heard.take)
    for number in 0..<20 { try set("\(number)") }
    try eventually("all is heard") { heard.values.last == "19" }
    let replacements = Mutex<[EtcdReplacement]>([])
    client.onReplacement { replacement in replacements.withLock { $0.append(replacement) } }
    try node.endAndRestore()
    try eventually("the watch has ended") { heard.end != nil }
    #expect(heard.end?.code == .compacted)
    #expect(client.history == 1)
    #expect(replacements.withLock { $0 } == [EtcdReplacement(known: first + 20, found: first)])
    let found = try client.read(.key(key), until: soon)
    #expect(found.moment == EtcdMoment(history: 1, revision: first))
    // A watch of what was read before learns the same; one of the present goes on.
    let (late, next) = (HeardEvents(), HeardEvents())
    _ = client.watch(.key(key), from: first + 21, of: 0, onNews: late.take)
    _ = client.watch(.key(key), after: found.moment, onNews: next.take)
    try eventually("it is reported") { late.end?.code == .compacted }
    try set("new")
    try next.wait(for: ["new"])
    #expect(next.end == nil)
    // One change has no place in the history that there is.
    #expect(throws: EtcdError.self) {
      try client.firstChange(of: key, from: first + 21, until: soon)
    }
    #expect(client.history == 1)
  }

  @Test("is not taken for one because answers overtake each other")
  func overtaking() throws {
    try set("first")
    // The answer to each read is held until another client's changes were seen.
    let isHeld = Atomic(false)
    let other = Mutex<EtcdClient?>(nil)
    let proxy = try LossyProxy(to: node.endpoint) { [self] path in
      guard path == "/v3/kv/range", isHeld.exchange(false, ordering: .relaxed) else { return }
      do {
        guard let other = other.withLock({ $0 }) else { return }
        for number in 0..<5 { try set("\(number)", through: other) }
      } catch {
        Issue.record(error)
      }
    }
    let slow = node.client { $0.endpoints = [proxy.endpoint] }
    other.withLock { $0 = slow }
    _ = try slow.read(.key(key), until: soon)
    for _ in 0..<5 {
      isHeld.store(true, ordering: .relaxed)
      _ = try slow.read(.key(key), until: soon)
    }
    #expect(slow.history == 0)
  }
}
