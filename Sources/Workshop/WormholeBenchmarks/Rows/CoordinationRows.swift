import Dispatch
import FoundationEssentials
import WormholeFiles
import WormholeSystem
import WormholeWorkshop

/// Coordinated access to a file against the same access without coordination. Writes to the given
/// place are compared with the bare create, write, close and rename over; `Data` writes, which wait
/// for the disk (fsync), with themselves; reads with the bare open, read and close.
///
/// Each has its own directory, so that each finds only inodes that it itself freed (see `Bench`).
///
/// Expected before the first measurement: 200 bytes at most twice the floor on ext4, where the
/// floor waits for its blocks to be written out and ours does so once, too; 64 MiB at most 1.3
/// times, because then the coordination itself does not count. No expectation on tmpfs, where the
/// floor is six calls that touch only memory.
enum CoordinationRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    try writes(bench) + [read(bench), presenters(bench)] + largeWrites(bench)
  }

  // MARK: 200 bytes

  private static let bytes = [UInt8](repeating: 0x20, count: RawValue.contentBytes)

  private static func writes(_ bench: Bench) throws -> [Row] {
    let ours = try CoordinatedFile(in: bench.directory("coordination"))
    let floor = try CoordinatedFile(in: bench.directory("coordination-raw"))
    let ourData = try CoordinatedFile(in: bench.directory("coordination-data"))
    let bareData = try CoordinatedFile(in: bench.directory("coordination-data-raw"))
    let content = Data(bytes)
    let results = try alternate(
      rounds: bench.shortRounds, runs: 4,
      [
        { try ours.write(bytes) }, { try floor.writeBare(bytes) },
        { try ourData.write(content) }, { try bareData.writeBare(content) },
      ])
    let expectation = try bench.onExt4(2)
    return [
      Row(
        "coordinated write / write + rename over", ours: results[0], floor: results[1],
        expected: expectation, notes: ["\(bytes.count) bytes, a coordinator for each write"]),
      Row(
        "coordinated Data.write, atomic / not coordinated", ours: results[2], floor: results[3],
        expected: expectation),
    ]
  }

  private static func read(_ bench: Bench) throws -> Row {
    let ours = try CoordinatedFile(in: bench.directory("coordination-read"))
    let floor = try CoordinatedFile(in: bench.directory("coordination-read-raw"))
    for file in [ours, floor] { try file.writeBare(bytes) }
    return try bench.compare(
      "coordinated read / open + read", rounds: bench.shortRounds, runs: 20,
      ours: { try ours.read() }, floor: { try floor.readBare(floor.path) })
  }

  // MARK: Presenters of other items

  private static let presenterCount = 8

  /// Measures a write in a container where another process presents other items, against one where
  /// no process presents anything.
  private static func presenters(_ bench: Bench) throws -> Row {
    _ = try bench.container("presented")
    _ = try bench.container("presented-by-nobody")
    let worker = try Worker("present-files", [bench.path + "/presented"])
    let presented = try CoordinatedFile(in: bench.directory("presented/files"))
    let alone = try CoordinatedFile(in: bench.directory("presented-by-nobody/files"))
    let row = try bench.compare(
      "coordinated write, \(presenterCount) presenters elsewhere / none",
      rounds: bench.shortRounds, runs: 4,
      ours: { try presented.write(bytes) }, floor: { try alone.write(bytes) })
    withExtendedLifetime(worker) {}
    return row
  }

  /// Runs the process with the presenters.
  static func present(_ directory: String) throws {
    try makeDirectory(directory + "/elsewhere")
    let presenters = try (0..<presenterCount).map { number in
      let path = "\(directory)/elsewhere/\(number)"
      _ = try FileDescriptor.open(path, [.writeOnly, .create])
      return IdlePresenter(URL(filePath: path))
    }
    for presenter in presenters { try FileCoordinator.addFilePresenter(presenter) }
    try Worker.serve()
    for presenter in presenters { FileCoordinator.removeFilePresenter(presenter) }
  }

  // MARK: 64 MiB

  private static func largeWrites(_ bench: Bench) throws -> [Row] {
    let changed = try CoordinatedFile(in: bench.directory("coordination-large"))
    let replaced = try CoordinatedFile(in: bench.directory("coordination-large-replaced"))
    let floor = try CoordinatedFile(in: bench.directory("coordination-large-raw"))
    let bytes = [UInt8](repeating: 0x20, count: bench.scaled(64) << 20)
    let results = try alternate(
      rounds: bench.isQuick ? 2 : 7, runs: 1,
      [
        { try changed.write(bytes) }, { try replaced.write(bytes, .forReplacing) },
        { try floor.writeBare(bytes) },
      ])
    return [
      Row(
        "coordinated write, large / write + rename over", .milliseconds, ours: results[0],
        floor: results[2], expected: .ratioAtMost(1.3),
        notes: ["\(bytes.count >> 20) MiB; copied first, where the file system cannot share it"]),
      Row(
        "coordinated write, large, for replacing / write + rename over", .milliseconds,
        ours: results[1], floor: results[2], expected: .ratioAtMost(1.3)),
    ]
  }
}

/// A file that is written and read with and without coordination.
final class CoordinatedFile {
  let path: String
  private let url: URL

  init(in directory: String) throws {
    path = directory + "/file"
    url = URL(filePath: path)
    try writeBare([UInt8]())
  }

  /// Writes to the given place, without its own rename.
  func write(_ content: [UInt8], _ options: WritingOptions = []) throws {
    try FileCoordinator().coordinate(writingItemAt: url, options: options) {
      let file = try FileDescriptor.open($0.path, [.writeOnly, .create, .truncate])
      try file.writeAll(content)
      try file.close()
    }
  }

  func write(_ content: Data) throws {
    try FileCoordinator().coordinate(writingItemAt: url) {
      try content.write(to: $0, options: .atomic)
    }
  }

  func writeBare(_ content: Data) throws { try content.write(to: url, options: .atomic) }

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
    _ = try FileDescriptor.open(path, .readOnly).readNumber()
  }
}

private final class IdlePresenter: FilePresenter {
  let presentedItemURL: URL?
  let presentedItemQueue = DispatchQueue(label: "presenter")

  init(_ url: URL) { presentedItemURL = url }
}
