import FoundationEssentials
import Wormhole
import WormholeInspection
import WormholeTerminals

/// Rows under a head: columns as wide as their content, as long as the lines fit.
///
/// If they do not fit, the last column is broken into several lines. If it would be too narrow to
/// read, each row becomes a paragraph: the first cell, and below it each other cell after its head.
/// Without a width, for output that a program reads, a row is always one line.
struct TextTable {
  private static let gap = 2
  /// The width below which a column of text is hard to read.
  private static let narrowest = 20

  private let head: [String]
  private let rows: [[String]]
  private let columns: Int?

  init(_ head: [String], _ rows: [[String]], columns: Int?) {
    self.head = head
    self.rows = rows.map { $0.map(\.onOneLine) }
    self.columns = columns
  }

  /// Empty without rows.
  var rendered: String {
    guard !rows.isEmpty else { return "" }
    let widths = head.indices.map { column in
      ([head] + rows).map { $0[column].count }.max() ?? 0
    }
    let natural = widths.reduce(0, +) + Self.gap * (widths.count - 1)
    guard let columns, natural > columns else { return lines(widths) }
    let last = columns - (natural - (widths.last ?? 0))
    return last >= Self.narrowest ? lines(widths, breakingAt: columns) : paragraphs(columns)
  }

  private func lines(_ widths: [Int], breakingAt columns: Int? = nil) -> String {
    ([head] + rows).map { row in
      let cells = zip(row, widths).dropLast().map { $0.padded(to: $1 + Self.gap) }.joined()
      let text = row.last ?? ""
      let line = columns.map { TextWrapping.wrap(text, columns: $0, after: cells) } ?? cells + text
      return line.withoutBlanksAtEnd + "\n"
    }.joined()
  }

  private func paragraphs(_ columns: Int) -> String {
    let label = (head.dropFirst().map(\.count).max() ?? 0) + 2 * Self.gap
    return (head.first ?? "") + "\n"
      + rows.map { row in
        let first = TextWrapping.wrap(row.first ?? "", columns: columns, indent: 0) + "\n"
        return zip(head, row).dropFirst().reduce(first) { text, cell in
          let lead = ("".padded(to: Self.gap) + cell.0).padded(to: label)
          let line = TextWrapping.wrap(cell.1, columns: columns, after: lead)
          return text + line.withoutBlanksAtEnd + "\n"
        }
      }.joined()
  }
}

/// A table of perhaps a million rows: every ten thousand another table begins, so that no more are in
/// memory.
struct LongTable {
  let head: [String]
  let columns: Int?
  private var rows: [[String]] = []

  init(_ head: [String], columns: Int?) { (self.head, self.columns) = (head, columns) }

  /// - Returns: The text of a table that is full; otherwise nothing.
  mutating func add(_ cells: [String]) -> String {
    rows.append(cells)
    return rows.count == 10_000 ? take() : ""
  }

  /// - Returns: The text of the rows since the last table.
  mutating func take() -> String {
    TextTable(head, exchange(&rows, with: []), columns: columns).rendered
  }
}

/// An item of a list: a line of JSON, or a row of a table for people.
protocol Listed: Encodable {
  static var head: [String] { get }
  static var dates: JSONDates { get }
  var cells: [String] { get }
}

extension Listed {
  static var dates: JSONDates { .wholeSeconds }
}

// The parts of a report in tables.

extension Int64 {
  /// `106 B`, `12 kB`.
  var sizeText: String {
    self < 10_000
      ? "\(self) B" : self < 10_000_000 ? "\(self / 1_000) kB" : "\(self / 1_000_000) MB"
  }
}

extension Date {
  var secondsText: String { ISO8601.text(wholeSeconds) ?? "-" }
}

extension PresenceMember {
  var sinceText: String { "\(process) since \(since.secondsText), \(state.rawValue)" }
}

extension ContainerReport.NamedContent {
  /// The cells of a value after its title.
  var cells: [String] {
    let changed = problem.map { "cannot be read: \($0.briefReason)" } ?? modified?.secondsText
    return [bytes?.sizeText ?? "-", changed ?? "-", publisher?.description ?? "-"]
  }

  var stateText: String {
    problem.map { "unreadable: \($0.briefReason)" } ?? state.map { "\($0)" } ?? "-"
  }
}

extension ContainerReport.NamedQueue: Listed {
  static let head = ["QUEUE", "WAITING", "TAKEN BY"]

  var cells: [String] { [title ?? name, waitingText, consumersText] }

  /// `3 (246 B, oldest …), 1 taken`.
  var waitingText: String {
    var text = "\(waiting)"
    if let oldest { text += " (\(waitingBytes.sizeText), oldest \(oldest.secondsText))" }
    if let nextDue { text += ", \(delayed) of them delayed, the next due \(nextDue.secondsText)" }
    if taken > 0 { text += ", \(taken) taken" }
    if failed > 0 { text += ", \(failed) failed" }
    return text
  }

  var consumersText: String {
    let consumers = ([consumer].compactMap(\.self) + workers).map(\.sinceText)
    return consumers.isEmpty ? "nobody" : consumers.joined(separator: ", ")
  }
}

extension ContainerReport.NamedLog {
  /// `3 (246 B, the last 3 of …)`.
  var messagesText: String {
    guard let newest else { return "\(messages)" }
    return "\(messages) (\(bytes.sizeText), the last \(last ?? 0) of \(newest.secondsText))"
  }

  var subscribersText: String {
    let subscribers = subscribers.map { reading in
      let (name, behind) = (reading.subscriber.name, reading.subscriber.behind)
      let process = reading.process.map { ", " + $0.sinceText } ?? ""
      return "\(name) (\(behind == 0 ? "all" : "all but \(behind)")\(process))"
    }
    return subscribers.isEmpty ? "nobody" : subscribers.joined(separator: ", ")
  }
}

extension Duration {
  /// `0.5 s`, `8 s`.
  var shortText: String {
    let seconds = self / .seconds(1)
    return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
  }
}
