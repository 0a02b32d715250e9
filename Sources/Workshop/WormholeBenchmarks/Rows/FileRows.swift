import Foundation
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals
import WormholeWorkshop

/// Files between peers, from the sending call until its handler has returned, against `cp` of the
/// same file in the same file system.
///
/// Nothing is dropped from caches or flushed: both sides read freshly written data, and write to
/// memory first. Copies are removed outside the measured time.
enum FileRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let megabytes = bench.scaled(1_024)
    let directory = try bench.directory("files")
    let large = directory + "/large"
    try write(large, megabytes)
    let transfer = try transferring(bench)
    return [
      try bench.compare(
        "file of \(megabytes) MiB", .milliseconds, rounds: bench.isQuick ? 3 : 7,
        // 0.95 of cp's speed.
        expected: .ratioAtMost(1 / 0.95),
        notes: ["floor: cp in the same file system; until the handler has returned"],
        ours: { try transfer(large) },
        floor: { try timeOfCopying(large, to: directory + "/copy") })
    ]
  }

  private static func write(_ path: String, _ megabytes: Int) throws {
    let file = try FileDescriptor.open(path, [.writeOnly, .create])
    var generator = SystemRandomNumberGenerator()
    let piece = (0..<(1 << 17)).map { _ in generator.next() as UInt64 }
    try piece.withUnsafeBytes { bytes in
      for _ in 0..<megabytes { try file.writeAll(bytes) }
    }
  }

  /// Makes two peers in one process.
  ///
  /// - Returns: A function that transfers a file from one to the other, and returns the time.
  private static func transferring(_ bench: Bench) throws -> (_ path: String) throws -> Double {
    let container = try bench.container("file-peers")
    let sender = try PeerSession("sender", in: container)
    let files = try PeerSession("receiver", in: container).receiveFiles()
    let handled = DispatchSemaphore(value: 0)
    let handle: @Sendable (PeerFile) -> Void = { _ in handled.signal() }
    files.handle(on: DispatchQueue(label: "files"), failure: { Terminal.say("\($0)") }, handle)
    return { path in
      var transfer: PeerFileTransfer?
      let time = try nanosecondsPerRun {
        transfer = try sender.transfer(fileAt: URL(filePath: path), to: "receiver")
        handled.wait()
      }
      _ = try transfer?.finalStatus(until: .now + .seconds(60))
      try transfer?.removeReceipt()
      while try !files.isIdle() {}
      return time
    }
  }

  private static func timeOfCopying(_ path: String, to copy: String) throws -> Double {
    let time = try nanosecondsPerRun { try runQuietly("cp", [path, copy]) }
    try removeFile(copy)
    return time
  }
}
