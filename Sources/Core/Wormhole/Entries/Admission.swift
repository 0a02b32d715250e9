/// The limit on waiting entries in a directory before a sender is refused.
///
/// A complete scan admits at most a sixteenth of the limit until the next scan, so the cost of one
/// send does not grow with the number of waiting entries.
package struct Admission: Sendable {
  package let maximumEntries: Int
  package let maximumBytes: Int
  /// How much may still be stored before the next scan.
  private var entries = 0
  private var bytes = 0

  package init(entries: Int, bytes: Int) {
    maximumEntries = entries
    maximumBytes = bytes
  }

  /// Returns whether the last scan admits this much; if not, scan again.
  package func allows(_ count: Int, _ size: Int) -> Bool { entries >= count && bytes >= size }

  /// Records a scan.
  ///
  /// - Returns: whether this much may be stored.
  package mutating func note(waiting: [EntryFile], for count: Int, _ size: Int) -> Bool {
    let freeEntries = maximumEntries - waiting.reduce(0) { $0 + $1.count }
    let freeBytes = maximumBytes - waiting.reduce(0) { $0 + $1.bytes }
    entries = min(freeEntries, max(maximumEntries / 16, count))
    bytes = min(freeBytes, max(maximumBytes / 16, size))
    return freeEntries >= count && freeBytes >= size
  }

  package mutating func noteStored(_ entry: EntryFile) {
    entries -= entry.count
    bytes -= entry.bytes
  }
}
