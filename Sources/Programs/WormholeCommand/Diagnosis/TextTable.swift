import WormholeWorkshop

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
    guard let columns, natural > columns else { return lines(widths, last: nil) }
    let last = columns - (natural - (widths.last ?? 0))
    return last >= Self.narrowest ? lines(widths, last: last) : paragraphs(columns)
  }

  /// - Parameter last: the maximum width of the last column.
  private func lines(_ widths: [Int], last: Int?) -> String {
    let indent = widths.dropLast().reduce(0) { $0 + $1 + Self.gap }
    return ([head] + rows).map { row in
      let cells = zip(row, widths).dropLast().map { cell, width in
        cell + String(repeating: " ", count: width - cell.count + Self.gap)
      }
      let text = row.last ?? ""
      let broken = last.map { _ in
        TextWrapping.wrap(text, columns: columns ?? .max, indent: indent, firstIndent: indent)
      }
      return trimmed(cells.joined() + (broken ?? text)) + "\n"
    }.joined()
  }

  private func paragraphs(_ columns: Int) -> String {
    let label = (head.dropFirst().map(\.count).max() ?? 0) + Self.gap
    return (head.first ?? "") + "\n"
      + rows.map { row in
        let first = TextWrapping.wrap(row.first ?? "", columns: columns, indent: 0) + "\n"
        return zip(head, row).dropFirst().reduce(first) { text, cell in
          let (head, content) = cell
          let lead =
            String(repeating: " ", count: Self.gap) + head
            + String(repeating: " ", count: label - head.count)
          return text
            + trimmed(
              lead
                + TextWrapping.wrap(
                  content, columns: columns, indent: lead.count, firstIndent: lead.count)) + "\n"
        }
      }.joined()
  }

  private func trimmed(_ text: String) -> String {
    String(text.reversed().drop { $0 == " " }.reversed())
  }
}
