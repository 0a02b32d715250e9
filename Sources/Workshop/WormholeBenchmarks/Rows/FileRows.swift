import Foundation
import Synchronization
import WormholePeers
import WormholeSystem
import WormholeWorkshop

/// Files between peers, from the sending call until its handler has returned, against `cp` of the
/// same file in the same file system; and files that are handed over, large against small.
///
/// Nothing is dropped from caches or flushed: both sides read freshly written data, and write to
/// memory first. Copies are removed outside the measured time.
enum FileRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let stage = try FileStage(bench, megabytes: bench.scaled(1_024))
    return [
      try bench.compare(
        "file of \(stage.megabytes) MiB", .milliseconds, rounds: bench.isQuick ? 3 : 7,
        // 0.95 of the speed of cp.
        expected: .ratioAtMost(1 / 0.95),
        notes: ["floor: cp in the same file system; until the handler has returned"],
        ours: { try stage.timeOfTransfer(stage.large) },
        floor: { try stage.timeOfCopying(stage.large) }),
      try bench.compare(
        "file moved", .milliseconds, rounds: bench.rounds, expected: .ratioAtMost(1.25),
        notes: ["floor: the same with a file of 1 MiB, so that 1 is constant time"],
        ours: { try stage.timeOfTransfer(stage.large, isMoved: true) },
        floor: { try stage.timeOfTransfer(stage.small, isMoved: true) }),
    ]
  }
}

/// Two peers in one process, and the files that go from one to the other.
private final class FileStage {
  let megabytes: Int
  let large: String
  let small: String
  private let copy: String
  private let sender: PeerSession
  private let files: PeerReceiver<PeerFile>
  private let handled = DispatchSemaphore(value: 0)
  /// The target of the handler for the next file; nil to let it be deleted.
  private let target = Target()

  private final class Target: Sendable {
    let path = Mutex<String?>(nil)
  }

  init(_ bench: Bench, megabytes: Int) throws {
    self.megabytes = megabytes
    let directory = try bench.directory("files")
    large = directory + "/large"
    small = directory + "/small"
    copy = directory + "/copy"
    let container = try bench.container("file-peers")
    sender = try PeerSession("sender", in: container)
    files = try PeerSession("receiver", in: container).receiveFiles()
    try write(large, megabytes)
    try write(small, 1)
    let (handled, target) = (handled, target)
    let queue = DispatchQueue(label: "files")
    let handle: @Sendable (PeerFile) throws -> Void = { file in
      if let path = target.path.withLock({ $0 }) { try file.claim(to: URL(filePath: path)) }
      handled.signal()
    }
    files.handle(on: queue, failure: { Output.problem("\($0)") }, handle)
  }

  private func write(_ path: String, _ megabytes: Int) throws {
    let file = try FileDescriptor.open(path, [.writeOnly, .create])
    var generator = SystemRandomNumberGenerator()
    let piece = (0..<(1 << 17)).map { _ in generator.next() as UInt64 }
    try piece.withUnsafeBytes { bytes in
      for _ in 0..<megabytes { try file.writeAll(bytes) }
    }
  }

  func timeOfTransfer(_ path: String, isMoved: Bool = false) throws -> Double {
    target.path.withLock { $0 = isMoved ? path : nil }
    let begin = ContinuousClock.now
    let transfer = try sender.transfer(
      fileAt: URL(filePath: path), to: "receiver", options: .init(isMoved: isMoved))
    handled.wait()
    let time = (ContinuousClock.now - begin).nanoseconds
    _ = try transfer.finalStatus(until: .now + .seconds(60))
    try transfer.removeReceipt()
    while try !files.isIdle() {}
    return time
  }

  func timeOfCopying(_ path: String) throws -> Double {
    let begin = ContinuousClock.now
    let program = try ChildProcess("cp", [path, copy])
    _ = try program.wait(until: .now + .seconds(60))
    let time = (ContinuousClock.now - begin).nanoseconds
    try removeFile(copy)
    return time
  }
}
