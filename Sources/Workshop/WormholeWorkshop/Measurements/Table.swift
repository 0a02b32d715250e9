import FoundationEssentials

/// The rows as a table for people.
package enum Table {
  /// - Parameter withExpectations: Whether to print the expectation of each row.
  package static func lines(_ rows: [Row], withExpectations: Bool = true) -> [String] {
    let heading = ["row", "ours", "floor", "ratio (10–90 %)", "expected", ""]
    let cells = ([heading] + rows.map(cells)).map { withExpectations ? $0 : Array($0.prefix(4)) }
    let widths = (cells.first ?? []).indices.map { column in
      cells.map { $0[column].count }.max() ?? 0
    }
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

/// The rows of a run for machines. Rows that were not measured are missing.
package struct Report: Codable {
  package struct Entry: Codable {
    package let name: String
    package let unit: String
    package let ours: Double?
    package let floor: Double?
    package let ratio: Double?
    package let ratioLow: Double?
    package let ratioHigh: Double?
    package let expected: String
    package let met: Bool?
    package let notes: [String]
  }

  package let fileSystem: String
  package let rows: [Entry]

  package init(_ rows: [Row], fileSystem: String) {
    self.fileSystem = fileSystem
    self.rows = rows.map { row in
      Entry(
        name: row.name, unit: row.unit.rawValue, ours: row.ours, floor: row.floor,
        ratio: row.ratio?.median, ratioLow: row.ratio?.low, ratioHigh: row.ratio?.high,
        expected: Table.expectation(row), met: row.isMet, notes: row.notes)
    }
  }

  package func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }
}

/// Returns a number with the given number of digits after the point.
package func fixed(_ number: Double, _ digits: Int) -> String {
  guard number.isFinite, abs(number) < 1e15 else { return "\(number)" }
  let unit = (0..<digits).reduce(1) { product, _ in product * 10 }
  let parts = Int((abs(number) * Double(unit)).rounded())
  let sign = number < 0 && parts > 0 ? "-" : ""
  guard digits > 0 else { return sign + "\(parts)" }
  let fraction = "\(parts % unit)"
  let zeros = String(repeating: "0", count: digits - fraction.count)
  return sign + "\(parts / unit)." + zeros + fraction
}
