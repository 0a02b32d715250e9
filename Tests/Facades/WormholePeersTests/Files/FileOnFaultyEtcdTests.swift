import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeEtcd
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

@Suite(
  "A file's sender on a faulty etcd", .blocking, .waiting,
  .needsEtcd)
struct FileOnFaultyEtcdTests {
  /// Kills the member after a given number of requests.
  private final class Gate: Sendable {
    let passed = Atomic(0)
    let limit = Atomic(Int.max)
    let isClosed = Atomic(false)
    let node: EtcdNode

    init(_ node: EtcdNode) { self.node = node }

    func pass() {
      let count = passed.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
      guard count == limit.load(ordering: .sequentiallyConsistent) else { return }
      node.end()
      isClosed.store(true, ordering: .sequentiallyConsistent)
    }

    func close(after more: Int) {
      limit.store(
        passed.load(ordering: .sequentiallyConsistent) + more, ordering: .sequentiallyConsistent)
    }
  }

  @Test(
    "does not give a file up because etcd does not answer for a while",
    arguments: [3, 4])
  func outage(eighths: Int) throws {
    let node = try EtcdNode()
    let gate = Gate(node)
    let proxy = try LossyProxy(to: node.endpoint) { path in
      if path.hasPrefix("/v3/kv/") { gate.pass() }
    }
    let directory = try TemporaryDirectory()
    func container(_ endpoint: String) throws -> SharedContainer {
      try SharedContainer(
        etcd: EtcdLocation(endpoints: [endpoint], prefix: "test"),
        companion: directory.path + "/companion")
    }
    try makeDirectory(directory.path + "/companion")
    let sender = try PeerSession("phone", in: container(proxy.endpoint))
    let receiver = try PeerSession("watch", in: container(node.endpoint))
    let content = FileScene.content(30_000)
    func intend(_ name: String) throws -> PeerFileTransfer {
      let path = directory.path + "/" + name
      try FileDescriptor.open(path, [.writeOnly, .create]).writeAll(content)
      return try sender.intendTransfer(fileAt: URL(filePath: path), to: "watch")
    }
    func received() throws -> [[UInt8]] {
      let files = try receiver.receiveFiles(until: soon)
      defer { files.close() }
      var all: [[UInt8]] = []
      while let file = try files.next(until: .now) {
        all.append(
          try FileDescriptor.open(file.url.path, .readOnly)
            .readToEnd(expectedBytes: content.count, maximumBytes: 1 << 20))
        try file.acknowledge()
      }
      return all
    }
    // How many requests it takes when nothing happens.
    _ = try intend("counted")
    let before = gate.passed.load(ordering: .sequentiallyConsistent)
    try sender.sendOutgoingFiles()
    let count = gate.passed.load(ordering: .sequentiallyConsistent) - before
    #expect(try received() == [content])

    let transfer = try intend("sent")
    gate.close(after: count * eighths / 8)
    let sending = DispatchGroup()
    let failures = Mutex<[any Error]>([])
    Blocking.queue().async(group: sending) {
      while true {
        do { return try sender.sendOutgoingFiles() } catch {
          let mayRepeat = failures.withLock { failures in
            failures.append(error)
            return failures.count < 100
          }
          guard mayRepeat else { return }
        }
      }
    }
    try eventually("the member is killed") {
      gate.isClosed.load(ordering: .sequentiallyConsistent)
    }
    // Longer than a call waits, so some of them fail; shorter than two of them, so the next ones don't.
    pauseThread(CallLimit.standardWait + .seconds(3))
    try node.start()
    sending.wait()
    let comment: Comment = "\(failures.withLock { $0 })"
    #expect(try received() == [content], comment)
    #expect(try transfer.status() == .processed, comment)
  }
}
