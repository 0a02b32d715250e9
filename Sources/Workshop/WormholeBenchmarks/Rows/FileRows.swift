import Foundation
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// Files between peers, from the sending call until its handler has returned, against `cp` of the
/// same file in the same file system; and files that are handed over, large against small.
///
/// Nothing is dropped from caches or flushed: both sides read freshly written data, and write to
/// memory first. Copies are removed outside the measured time.
final class FileRows {
  private let megabytes: Int
  private let large: String
  private let small: String
  private let copy: String
  private let sender: PeerSession
  private let files: PeerReceiver<PeerFile>
  private let handled = DispatchSemaphore(value: 0)

  static func measure(_ bench: Bench) throws -> [Row] {
    let scene = try FileRows(bench)
    return [
      try bench.compare(
        "file of \(scene.megabytes) MiB", .milliseconds, rounds: bench.isQuick ? 3 : 7,
        // 0.95 of the speed of cp.
        expected: .ratioAtMost(1 / 0.95),
        notes: ["floor: cp in the same file system; until the handler has returned"],
        ours: { try scene.timeOfTransfer(scene.large) }, floor: { try scene.timeOfCopying() }),
      try bench.compare(
        "file moved", .milliseconds, rounds: bench.rounds, expected: .ratioAtMost(1.25),
        notes: ["floor: the same with a file of 1 MiB, so that 1 is constant time"],
        ours: { try scene.timeOfTransfer(scene.large, isMoved: true) },
        floor: { try scene.timeOfTransfer(scene.small, isMoved: true) }),
    ]
  }

  /// Makes two peers in one process, and the files that go from one to the other.
  private init(_ bench: Bench) throws {
    megabytes = bench.scaled(1_024)
    let directory = try bench.directory("files")
    large = directory + "/large"
    small = directory + "/small"
    copy = directory + "/copy"
    let container = try bench.container("file-peers")
    sender = try PeerSession("sender", in: container)
    files = try PeerSession("receiver", in: container).receiveFiles()
    try write(large, megabytes)
    try write(small, 1)
    let handled = handled
    // A file that names its former place is put back there; others are deleted.
    let handle: @Sendable (PeerFile) throws -> Void = { file in
      if let path = file.metadata?.stringValue { try file.claim(to: URL(filePath: path)) }
      handled.signal()
    }
    files.handle(on: DispatchQueue(label: "files"), failure: { Terminal.say("\($0)") }, handle)
  }

  private func write(_ path: String, _ megabytes: Int) throws {
    let file = try FileDescriptor.open(path, [.writeOnly, .create])
    var generator = SystemRandomNumberGenerator()
    let piece = (0..<(1 << 17)).map { _ in generator.next() as UInt64 }
    try piece.withUnsafeBytes { bytes in
      for _ in 0..<megabytes { try file.writeAll(bytes) }
    }
  }

  private func timeOfTransfer(_ path: String, isMoved: Bool = false) throws -> Double {
    var transfer: PeerFileTransfer?
    let time = try nanosecondsPerRun {
      transfer = try sender.transfer(
        fileAt: URL(filePath: path), to: "receiver", metadata: isMoved ? .string(path) : nil,
        options: .init(isMoved: isMoved))
      handled.wait()
    }
    _ = try transfer?.finalStatus(until: .now + .seconds(60))
    try transfer?.removeReceipt()
    while try !files.isIdle() {}
    return time
  }

  private func timeOfCopying() throws -> Double {
    let time = try nanosecondsPerRun { try runQuietly("cp", [large, copy]) }
    try removeFile(copy)
    return time
  }
}
