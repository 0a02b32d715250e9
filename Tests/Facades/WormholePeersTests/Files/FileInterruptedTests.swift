import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeInspection
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeEtcd
@testable import WormholePeers

@Suite("A file on etcd that was interrupted begins again", .blocking, .needsEtcd)
struct FileInterruptedTests {
  /// Counts requests between the processes and etcd, and does something before one of them gets there.
  private final class Counter: Sendable {
    private let state = Mutex<(count: Int, limit: Int, action: @Sendable () -> Void)>((0, 0, {}))

    var count: Int { state.withLock(\.count) }

    func act(at limit: Int, _ action: @escaping @Sendable () -> Void) {
      state.withLock { ($0.limit, $0.action) = (limit, action) }
    }

    func pass() {
      let action = state.withLock { state in
        state.count += 1
        return state.count == state.limit ? state.action : nil
      }
      action?()
    }
  }

  private let directory: TemporaryDirectory
  /// Five pieces.
  private let content = FileScene.content(2_200_000)

  init() throws {
    directory = try TemporaryDirectory()
    for name in ["machine", "received"] { try makeDirectory(directory.path + "/" + name) }
    try FileDescriptor.open(directory.path + "/f", [.writeOnly, .create]).writeAll(content)
  }

  private func location(_ endpoint: String) -> EtcdLocation {
    var location = EtcdLocation(endpoints: [endpoint], prefix: "test" + directory.path)
    location.lifetime = .seconds(2)
    return location
  }

  private func session(_ name: String, _ endpoint: String) throws -> PeerSession {
    let container = try SharedContainer(
      etcd: location(endpoint), companion: directory.path + "/machine")
    return try PeerSession(name, in: container)
  }

  /// A process of another machine, which all of these share.
  private func process(_ endpoint: String) throws -> Participant {
    try Participant(
      program: BuiltProgram.path("participant"), [location(endpoint).description],
      environment: ["XDG_STATE_HOME=\(directory.path)/state"])
  }

  private func container() throws -> EtcdContainer {
    let session = try session("watch", EtcdNode.shared.get().endpoint)
    guard let container = session.container.engine as? EtcdContainer else {
      throw NeverHappened(what: "a container on etcd")
    }
    return container
  }

  /// The pieces that are on etcd, each with the revision at which it was put.
  private func pieces() throws -> [KeyValue] {
    let container = try container()
    return try container.client.read(
      .prefix(container.key(.ownQueue, PeerNames.files("watch"), part: "/t/")), keysOnly: true,
      until: soon
    ).items
  }

  private func kill(_ victim: Participant) {
    #expect(throws: Never.self) { try victim.send(.kill) }
  }

  private func received(by receiver: Participant) throws -> [UInt8] {
    #expect(try receiver.ask("file-work watch \(directory.path)/received") == "done")
    return try FileDescriptor.open(directory.path + "/received/f", .readOnly)
      .readToEnd(expectedBytes: content.count, maximumBytes: 1 << 24)
  }

  @Test("when its sender is killed, and nothing of the first attempt is left")
  func senderKilled() throws {
    let etcd = try EtcdNode.shared.get().endpoint
    let puts = Counter()
    let proxy = try LossyProxy(to: etcd) { if $0 == "/v3/kv/put" { puts.pass() } }
    let transfer = try session("phone", etcd)
      .intendTransfer(fileAt: URL(filePath: directory.path + "/f"), to: "watch")
    let victim = try process(proxy.endpoint)
    puts.act(at: 3) { kill(victim) }
    try victim.tell("file-copy phone")
    #expect(throws: Participant.Failure.self) { try victim.answer() }
    let first = try pieces()
    // The second one was under way with the third.
    #expect((1...3).contains(first.count))

    #expect(try process(etcd).ask("file-copy phone") == "done")
    let all = try pieces()
    #expect(all.count == 5 && Set(first).isDisjoint(with: all))
    #expect(try received(by: process(etcd)) == content)
    #expect(try transfer.status() == .processed && pieces().isEmpty)
  }

  @Test(
    "when etcd was out of reach for long, by the same process or the next one",
    .waiting,
    arguments: [true, false])
  func outage(isSame: Bool) throws {
    let etcd = try EtcdNode.shared.get().endpoint
    let puts = Counter()
    let proxy = try LossyProxy(to: etcd) { if $0 == "/v3/kv/put" { puts.pass() } }
    _ = try session("phone", etcd)
      .intendTransfer(fileAt: URL(filePath: directory.path + "/f"), to: "watch")
    let first = try process(proxy.endpoint)
    let isBlocked = Atomic(false)
    puts.act(at: 3) {
      proxy.block()
      isBlocked.store(true, ordering: .releasing)
    }
    try first.tell("file-copy phone")
    try eventually("etcd is out of reach") { isBlocked.load(ordering: .acquiring) }
    // Whatever it does after its call has failed can be done.
    pauseThread(CallLimit.standardWait + .seconds(2))
    proxy.unblock()
    #expect(try first.answer().contains("error clusterUnreachable"))
    if !isSame {
      // What is to end with a process ends before its exit does.
      try first.tell("exit")
      #expect(try first.wait() == .exited(0))
    }
    let next = isSame ? first : try process(proxy.endpoint)
    #expect(try next.ask("file-copy phone") == "done")
    #expect(try received(by: process(etcd)) == content)
    // Pieces of the first attempt whose manifest has ended with its session.
    _ = try session("watch", etcd).container.sweep()
    #expect(try pieces().isEmpty)
  }

  @Test("when its receiver is killed, on the same machine")
  func receiverKilled() throws {
    let etcd = try EtcdNode.shared.get().endpoint
    let reads = Counter()
    let directory = directory
    let proxy = try LossyProxy(to: etcd) {
      if $0 == "/v3/kv/range", directory.listing.contains("/incoming") { reads.pass() }
    }
    let sender = try session("phone", etcd)
    _ = try sender.intendTransfer(fileAt: URL(filePath: directory.path + "/f"), to: "watch")
    try sender.sendOutgoingFiles()
    let victim = try process(proxy.endpoint)
    reads.act(at: 5) { kill(victim) }
    try victim.tell("file-work watch \(directory.path)/received")
    #expect(throws: Participant.Failure.self) { try victim.answer() }
    #expect(reads.count == 5 && directory.listing.contains("/incoming"))

    #expect(try received(by: process(etcd)) == content)
    #expect(!directory.listing.contains("/incoming"), "\(directory.listing)")
  }
}
