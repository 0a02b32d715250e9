import Foundation

/// The rows as a table for people.
enum Table {
  static func lines(_ rows: [Row]) -> [String] {
    let heading = ["row", "ours", "floor", "ratio (10–90 %)", "expected", ""]
    let cells = [heading] + rows.map(cells)
    let widths = heading.indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
    var lines: [String] = []
    for (index, row) in cells.enumerated() {
      let padded = row.enumerated().map { column, text in
        let space = String(repeating: " ", count: widths[column] - text.count)
        return column == 1 || column == 2 ? space + text : text + space
      }
      lines.append(padded.joined(separator: "  "))
      if index > 0 { lines += rows[index - 1].notes.map { "    " + $0 } }
    }
    return lines
  }

  private static func cells(_ row: Row) -> [String] {
    let ratio = row.ratio.map {
      "\(fixed($0.median, 2)) (\(fixed($0.low, 2))–\(fixed($0.high, 2)))"
    }
    return [
      row.name, amount(row.ours, row.unit), amount(row.floor, row.unit), ratio ?? "–",
      expectation(row), verdict(row),
    ]
  }

  private static func amount(_ number: Double?, _ unit: Row.Unit) -> String {
    number.map { fixed($0, $0 < 100 ? 1 : 0) + " " + unit.rawValue } ?? "–"
  }

  static func expectation(_ row: Row) -> String {
    switch row.expectation {
    case .ratioAtMost(let limit): "≤ \(fixed(limit, 2))"
    case .oursAtMost(let limit): "≤ \(fixed(limit, 0)) \(row.unit.rawValue)"
    case nil: "none"
    }
  }

  private static func verdict(_ row: Row) -> String {
    row.isMet.map { $0 ? "ok" : "above" } ?? ""
  }
}

/// The rows of a run for machines. What was not measured is missing.
struct Report: Codable {
  struct Entry: Codable {
    let name: String
    let unit: String
    let ours: Double?
    let floor: Double?
    let ratio: Double?
    let ratioLow: Double?
    let ratioHigh: Double?
    let expected: String
    let met: Bool?
    let notes: [String]
  }

  let fileSystem: String
  let rows: [Entry]

  init(_ rows: [Row], fileSystem: String) {
    self.fileSystem = fileSystem
    self.rows = rows.map { row in
      Entry(
        name: row.name, unit: row.unit.rawValue, ours: row.ours, floor: row.floor,
        ratio: row.ratio?.median, ratioLow: row.ratio?.low, ratioHigh: row.ratio?.high,
        expected: Table.expectation(row), met: row.isMet, notes: row.notes)
    }
  }

  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }
}

/// Returns a number with the given number of digits after the point.
func fixed(_ number: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", number) }
