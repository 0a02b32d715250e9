import Histories
import SystemCalls

/// The journal of one strand of a worker.
struct Journal {
  let life: Int
  let entries: [JournalEntry]
}

/// The records of all processes of a run.
struct Records {
  /// The operations of the processes.
  var operations: [Operation] = []
  /// The reports to their observers, as reads.
  var observations: [Operation] = []
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

  // A worker may be killed before it has written any.
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
