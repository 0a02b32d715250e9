import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeEtcd
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

/// The requests of a file's sender, each of which is a round trip.
@Suite("The requests of a file's sender on etcd", .blocking, .needsEtcd)
struct FileRequestsTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.path + "/f"
    try makeDirectory(directory.path + "/machine")
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll([1, 2, 3])
  }

  private func session(_ endpoint: String) throws -> PeerSession {
    let location = EtcdLocation(endpoints: [endpoint], prefix: "test" + directory.path)
    return try PeerSession(
      "phone", in: SharedContainer(etcd: location, companion: directory.path + "/machine"))
  }

  @Test("look once whether the file was given up, and end with its entry")
  func sending() throws {
    let paths = Mutex<[String]>([])
    let proxy = try LossyProxy(to: EtcdNode.shared.get().endpoint) { path in
      paths.withLock { $0.append(path) }
    }
    let session = try session(proxy.endpoint)
    let transfer = try session.intendTransfer(fileAt: URL(filePath: path), to: "watch")
    paths.withLock { $0 = [] }
    try session.sendOutgoingFiles()
    let made = paths.withLock { $0 }
    // The note of files that are given up, and the agents that start the peer.
    #expect(made.count { $0 == "/v3/kv/range" } == 2, "\(made)")
    // To join, take, begin, complete, mark, look at the peer's queue, store, end, look, and leave.
    #expect(made.count { $0 == "/v3/kv/txn" } == 10, "\(made)")
    #expect(try transfer.status() == .stored)
  }

  @Test("do not wait for a look at expired receipts, nor does that wait for them")
  func expiry() throws {
    let hasLooked = Awaited<Bool>()
    let isSending = Atomic(false)
    let proxy = try LossyProxy(to: EtcdNode.shared.get().endpoint) { path in
      guard isSending.load(ordering: .sequentiallyConsistent) else { return }
      // The first reading of a range is that of the receipts.
      if path == "/v3/kv/range" { hasLooked.settle(true) }
      if path == "/v3/lease/grant" { _ = hasLooked.wait() }
    }
    let session = try session(proxy.endpoint)
    isSending.store(true, ordering: .sequentiallyConsistent)
    let transfer = try session.transfer(fileAt: URL(filePath: path), to: "watch")
    let limit = soon
    session.finishCopying(until: limit)
    // Otherwise the session, which comes first, waits for the receipts.
    #expect(hasLooked.isSettled && .now < limit)
    hasLooked.settle(true)
    #expect(try transfer.status() == .stored)
  }
}
