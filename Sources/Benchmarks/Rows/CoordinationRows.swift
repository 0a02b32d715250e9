import AppGroup
import Dispatch
import FileCoordination
import FoundationEssentials
import SystemCalls

/// Coordinated access to a file against the same without any coordination: for a write the bare
/// create, write, close and rename over, for a read the bare open, read and close.
///
/// Each has a directory of its own, so that each finds only the inodes that it freed itself (see
/// `Bench`). What is in the accessor is what a program would write: `Data`, atomically or not.
///
/// Expected before the first measurement: 200 bytes at most twice the floor on ext4, where the
/// floor waits for its blocks to be written out and ours does so once, too; 64 MiB at most 1.3
/// times, for then the coordination itself does not count. Nothing on tmpfs, where the floor is six
/// calls that touch memory only.
enum CoordinationRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    try writes(bench) + [read(bench), presenters(bench)] + largeWrites(bench)
  }

  private static func isOnDisk(_ bench: Bench) throws -> Bool {
    try bench.fileSystemName() == "ext4"
  }

  // MARK: 200 bytes

  private static func writes(_ bench: Bench) throws -> [Row] {
    let atomic = try CoordinatedFile(bench, "coordination-atomic")
    let plain = try CoordinatedFile(bench, "coordination-plain")
    let floor = try CoordinatedFile(bench, "coordination-raw")
    let content = Data(repeating: 0x20, count: RawValue.contentBytes)
    let bytes = Array(content)
    let count = 4
    let results = try alternate(
      rounds: bench.shortRounds,
      [
        { try nanosecondsPerRun(count) { try atomic.write(content, .atomic) } },
        { try nanosecondsPerRun(count) { try plain.write(content, []) } },
        { try nanosecondsPerRun(count) { try floor.writeBare(bytes) } },
      ])
    let expectation: Row.Expectation? = try isOnDisk(bench) ? .ratioAtMost(2) : nil
    return [
      Row(
        "coordinated write, atomic / write + rename over", ours: results[0], floor: results[2],
        expected: expectation, notes: ["\(content.count) bytes, a coordinator for each write"]),
      Row(
        "coordinated write, in place / write + rename over", ours: results[1], floor: results[2],
        expected: expectation),
    ]
  }

  private static func read(_ bench: Bench) throws -> Row {
    let ours = try CoordinatedFile(bench, "coordination-read")
    let floor = try CoordinatedFile(bench, "coordination-read-raw")
    let content = [UInt8](repeating: 0x20, count: RawValue.contentBytes)
    for file in [ours, floor] { try file.writeBare(content) }
    let count = 20
    let results = try alternate(
      rounds: bench.shortRounds,
      [
        { try nanosecondsPerRun(count) { try ours.read() } },
        { try nanosecondsPerRun(count) { try floor.readBare(floor.path) } },
      ])
    return Row("coordinated read / open + read", ours: results[0], floor: results[1])
  }

  // MARK: Presenters of other items

  private static let presenterCount = 8

  /// A write in a container where another process presents other items, against one where nobody
  /// presents anything.
  private static func presenters(_ bench: Bench) throws -> Row {
    _ = try bench.container("presented")
    _ = try bench.container("presented-by-nobody")
    let worker = try Worker(.presentFiles, [bench.path + "/presented"])
    let presented = try CoordinatedFile(bench, "presented/files")
    let alone = try CoordinatedFile(bench, "presented-by-nobody/files")
    let content = Data(repeating: 0x20, count: RawValue.contentBytes)
    let count = 4
    let results = try alternate(
      rounds: bench.shortRounds,
      [
        { try nanosecondsPerRun(count) { try presented.write(content, []) } },
        { try nanosecondsPerRun(count) { try alone.write(content, []) } },
      ])
    _ = try worker.ask("end")
    return Row(
      "coordinated write, \(presenterCount) presenters elsewhere / none", ours: results[0],
      floor: results[1])
  }

  /// The process with the presenters.
  static func present(_ directory: String) throws {
    try makeDirectory(directory + "/elsewhere")
    let presenters = try (0..<presenterCount).map { number in
      let path = "\(directory)/elsewhere/\(number)"
      _ = try FileDescriptor.open(path, [.writeOnly, .create])
      return IdlePresenter(URL(filePath: path))
    }
    for presenter in presenters { try FileCoordinator.addFilePresenter(presenter) }
    try WorkerMode.serve { _ in "" }
    for presenter in presenters { FileCoordinator.removeFilePresenter(presenter) }
  }

  // MARK: 64 MiB

  private static func largeWrites(_ bench: Bench) throws -> [Row] {
    let changed = try CoordinatedFile(bench, "coordination-large")
    let replaced = try CoordinatedFile(bench, "coordination-large-anew")
    let floor = try CoordinatedFile(bench, "coordination-large-raw")
    let content = Data(repeating: 0x20, count: bench.scaled(64) << 20)
    let bytes = Array(content)
    let results = try alternate(
      rounds: bench.isQuick ? 2 : 7,
      [
        { try nanosecondsPerRun(1) { try changed.write(content, .atomic) } },
        { try nanosecondsPerRun(1) { try replaced.write(content, .atomic, .forReplacing) } },
        { try nanosecondsPerRun(1) { try floor.writeBare(bytes) } },
      ])
    return [
      Row(
        "coordinated write, large / write + rename over", .milliseconds, ours: results[0],
        floor: results[2], expected: .ratioAtMost(1.3),
        notes: ["\(content.count >> 20) MiB; copied first, where the file system cannot share it"]),
      Row(
        "coordinated write, large, for replacing / write + rename over", .milliseconds,
        ours: results[1], floor: results[2], expected: .ratioAtMost(1.3)),
    ]
  }
}

/// A file that is written and read with and without coordination.
private final class CoordinatedFile {
  let path: String
  private let url: URL

  init(_ bench: Bench, _ directory: String) throws {
    path = try bench.directory(directory) + "/file"
    url = URL(filePath: path)
    try writeBare([])
  }

  func write(
    _ content: Data, _ how: Data.WritingOptions, _ options: WritingOptions = []
  ) throws {
    try FileCoordinator().coordinate(writingItemAt: url, options: options) {
      try content.write(to: $0, options: how)
    }
  }

  /// create, write, close, rename over.
  func writeBare(_ content: [UInt8]) throws(Errno) {
    let file = try FileDescriptor.open(path + ".new", [.writeOnly, .create, .exclusive])
    try file.writeAll(content)
    try file.close()
    try rename(path + ".new", at: Directory.current, to: path, at: Directory.current)
  }

  func read() throws {
    try FileCoordinator().coordinate(readingItemAt: url) { try readBare($0.path) }
  }

  /// open, read, close.
  func readBare(_ path: String) throws(Errno) {
    let file = try FileDescriptor.open(path, .readOnly)
    var failure: Errno?
    withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
      do throws(Errno) { _ = try file.read(into: buffer) } catch { failure = error }
    }
    if let failure { throw failure }
  }
}

/// Shows a file, and has nothing to say about it.
private final class IdlePresenter: FilePresenter {
  let presentedItemURL: URL?
  let presentedItemQueue = DispatchQueue(label: "presenter")

  init(_ url: URL) {
    presentedItemURL = url
  }
}
