/// The recent frequency of events, by name: `top` shows it for the events of a container.
struct Activity {
  /// The subject of a row.
  struct Subject: Hashable {
    let kind: MonitorLine.Kind
    let name: String
  }

  struct Row {
    let subject: Subject
    /// Events per second.
    let rate: Double
    let total: Int
    /// The last event.
    let last: MonitorLine
  }

  private struct Entry {
    var total = 0
    /// The events of the last seconds, the latest second at the end.
    var recent: [(second: Int, count: Int)] = []
    var last: MonitorLine
  }

  /// The time over which a rate is taken, in seconds.
  static let window = 10
  /// Beyond this number of names, those that were quiet for longest are forgotten.
  private static let maximumNames = 1_000

  private var entries: [Subject: Entry] = [:]
  /// All events.
  private(set) var total = 0

  /// - Parameter second: The seconds since the beginning; it never decreases.
  mutating func note(_ line: MonitorLine, at second: Int) {
    let subject = Subject(kind: line.kind, name: line.title ?? line.name)
    var entry = entries[subject] ?? Entry(last: line)
    entry.total += 1
    entry.last = line
    if entry.recent.last?.second == second {
      entry.recent[entry.recent.count - 1].count += 1
    } else {
      entry.recent.append((second, 1))
      entry.recent.removeAll { $0.second <= second - Self.window }
    }
    entries[subject] = entry
    total += 1
    if entries.count > Self.maximumNames { forgetHalf() }
  }

  private mutating func forgetHalf() {
    let quiet = entries.sorted {
      ($0.value.recent.last?.second ?? 0) < ($1.value.recent.last?.second ?? 0)
    }
    for (subject, _) in quiet.prefix(Self.maximumNames / 2) { entries[subject] = nil }
  }

  /// All events per second.
  func rate(at second: Int) -> Double {
    entries.values.reduce(0) { $0 + rate($1, second) }
  }

  /// The rows, the busiest first, and of two that are equally busy the one with more events.
  func rows(at second: Int) -> [Row] {
    entries.map { subject, entry in
      Row(subject: subject, rate: rate(entry, second), total: entry.total, last: entry.last)
    }
    .sorted { first, second in
      if first.rate != second.rate { return first.rate > second.rate }
      if first.total != second.total { return first.total > second.total }
      return first.subject.name.utf8.lexicographicallyPrecedes(second.subject.name.utf8)
    }
  }

  private func rate(_ entry: Entry, _ second: Int) -> Double {
    let count = entry.recent.reduce(0) {
      $1.second > second - Self.window ? $0 + $1.count : $0
    }
    // In the first seconds, over the time that has passed.
    return Double(count) / Double(max(1, min(Self.window, second)))
  }
}
