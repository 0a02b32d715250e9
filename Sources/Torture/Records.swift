import Histories
import SystemCalls

/// The journal of one strand of a worker.
struct Journal {
  let life: Int
  let entries: [JournalEntry]
}

/// What all processes of a run have written down.
struct Records {
  /// What they did.
  var operations: [Operation] = []
  /// What their observers were told, as reads.
  var observations: [Operation] = []
  /// What each strand of each worker tells beside that.
  var journals: [Journal] = []

  init() {}

  init(_ directory: RunDirectory, lives: Int) throws {
    for life in 1...max(lives, 1) {
      observations += try parseHistory(Self.text(directory.observations(life: life)))
      for strand in Strand.allCases {
        operations += try parseHistory(Self.text(directory.history(life: life, strand)))
        journals.append(
          Journal(
            life: life,
            entries: JournalEntry.parse(try Self.text(directory.journal(life: life, strand)))))
      }
    }
  }

  // A worker may be killed before it has any.
  private static func text(_ path: String) throws(Errno) -> String {
    do throws(Errno) {
      return try RecordFile.text(path)
    } catch {
      guard error == .noSuchFile else { throw error }
      return ""
    }
  }

  /// The entries that are of a kind, with the worker that made them.
  func entries<Detail>(_ pick: (JournalEntry) -> Detail?) -> [(life: Int, detail: Detail)] {
    journals.flatMap { journal in journal.entries.compactMap(pick).map { (journal.life, $0) } }
  }

  func count(_ entry: JournalEntry) -> Int {
    journals.reduce(0) { $0 + $1.entries.count { $0 == entry } }
  }

  /// How many operations of each kind succeeded.
  var kinds: [(kind: String, count: Int)] {
    var counts: [String: Int] = [:]
    for case .did(let kind) in journals.map(\.entries).joined() { counts[kind, default: 0] += 1 }
    return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }
}
