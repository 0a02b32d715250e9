import Wormhole
import WormholeEtcd
import WormholeSystem
import WormholeWorkshop

/// The journal of one strand of a worker.
struct Journal {
  let life: Int
  let entries: [JournalEntry]
}

/// The records of all processes of a run.
struct Records {
  /// The operations of the processes.
  var operations: [HistoryOperation] = []
  /// The reports to their observers, as reads.
  var observations: [HistoryOperation] = []
  /// The journal of each strand of each worker.
  var journals: [Journal] = []

  init() {}

  init(_ directory: RunDirectory, lives: Int) throws {
    for life in 1...max(lives, 1) {
      for case .observed(let read) in try Self.entries(directory.observations(life: life)) {
        observations.append(read)
      }
      for strand in Strand.allCases {
        let entries = try Self.entries(directory.journal(life: life, strand))
        operations += entries.operations(of: Workload.process(life: life, strand))
        journals.append(Journal(life: life, entries: entries))
      }
    }
  }

  // A worker may be killed before it has written an entry.
  private static func entries(_ path: String) throws(Errno) -> [JournalEntry] {
    JournalEntry.parse(try ifPresent(RecordFile.text(path)) ?? "")
  }

  /// Returns the entries of a kind, with the worker that made them.
  func entries<Detail>(_ pick: (JournalEntry) -> Detail?) -> [(life: Int, detail: Detail)] {
    journals.flatMap { journal in journal.entries.compactMap(pick).map { (journal.life, $0) } }
  }

  func count(_ entry: JournalEntry) -> Int {
    journals.reduce(0) { $0 + $1.entries.count { $0 == entry } }
  }

  /// The number of successful operations of each kind.
  var kinds: [(kind: String, count: Int)] {
    var counts: [String: Int] = [:]
    for case .did(let kind) in journals.map(\.entries).joined() { counts[kind, default: 0] += 1 }
    return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }
}

/// The record of one process, written one piece per write, so that it survives a kill.
final class RecordFile: Sendable {
  private let file: SharedDescriptor

  init(_ path: String) throws(Errno) {
    file = SharedDescriptor(
      try FileDescriptor.open(path, [.writeOnly, .create, .append, .noFollow]))
  }

  func append(_ text: String) throws(Errno) { try file.descriptor.writeAll(Array(text.utf8)) }

  static func text(_ path: String) throws(Errno) -> String {
    let file = try FileDescriptor.open(path, .readOnly)
    let size = Int(try file.status().size)
    return String(
      decoding: try file.readToEnd(expectedBytes: size, maximumBytes: 4 << 30), as: UTF8.self)
  }
}

/// The directory of a run's files, and the place of its container.
struct RunDirectory: Codable {
  let path: String
  /// The place on etcd, as text; nil if the container is a directory in this one.
  var etcd: String?

  var container: String { path + "/container" }
  private var records: String { path + "/records" }

  /// Returns the path of the file that is sent under a number.
  func file(_ number: UInt64) -> String { "\(path)/files/\(number)" }
  func observations(life: Int) -> String { "\(records)/observations-\(life)" }
  func journal(life: Int, _ strand: Strand) -> String {
    "\(records)/journal-\(life)-\(strand.rawValue)"
  }

  func open() throws -> SharedContainer {
    guard let etcd else { return try SharedContainer(path: container) }
    return try SharedContainer(etcd: EtcdLocation(etcd), companion: container)
  }

  func create() throws(Errno) {
    for directory in [path, container, records, path + "/files"] { try makeDirectory(directory) }
  }

  func remove() throws(Errno) {
    let remove = try ChildProcess("rm", ["-rf", "--", path])
    _ = try remove.wait(until: .now + .seconds(60))
  }
}
