import AppGroup
import FoundationEssentials
import PropertyLists
import Synchronization
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import PeerConnectivity

@Suite(
  "A file's sender on a faulty etcd", .blocking,
  .disabled(if: EtcdNode.isMissing, "etcd is not installed"))
struct FileOnFaultyEtcdTests {
  /// Lets requests through until there were as many as it was told.
  private final class Gate: Sendable {
    let passed = Atomic(0)
    let limit = Atomic(Int.max)
    let proxy = Mutex<LossyProxy?>(nil)

    func pass() {
      let count = passed.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
      guard count > limit.load(ordering: .sequentiallyConsistent) else { return }
      proxy.withLock { $0 }?.block()
    }

    func close(after more: Int) {
      limit.store(
        passed.load(ordering: .sequentiallyConsistent) + more, ordering: .sequentiallyConsistent)
    }
  }

  @Test(
    "does not give a file up because etcd does not answer for a while",
    arguments: [1, 2, 3], [false, true])
  func outage(quarter: Int, isMoved: Bool) throws {
    let node = try EtcdNode()
    let gate = Gate()
    let proxy = try LossyProxy(to: node.endpoint) { path in
      if path.hasPrefix("/v3/kv/") { gate.pass() }
    }
    gate.proxy.withLock { $0 = proxy }
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
      return try sender.intendTransfer(
        fileAt: URL(filePath: path), to: "watch", options: .init(isMoved: isMoved))
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
    gate.close(after: count * quarter / 4)
    let error = #expect(throws: PeerError.self) {
      try CallLimit.within(.now + .seconds(1)) { try sender.sendOutgoingFiles() }
    }
    gate.limit.store(.max, ordering: .sequentiallyConsistent)
    proxy.unblock()
    let comment: Comment = "\(String(describing: error))"
    #expect(try !transfer.status().isEnd, comment)
    try sender.sendOutgoingFiles()
    #expect(try received() == [content], comment)
    #expect(try transfer.status() == .processed, comment)
  }
}
