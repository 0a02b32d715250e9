import Foundation

/// The rows as text: a table for people, JSON for machines.
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

  private static func expectation(_ row: Row) -> String {
    switch row.expectation {
    case .ratioAtMost(let limit): "≤ \(fixed(limit, 2))"
    case .oursAtMost(let limit): "≤ \(fixed(limit, 0)) \(row.unit.rawValue)"
    case nil: "none"
    }
  }

  private static func verdict(_ row: Row) -> String {
    row.isMet.map { $0 ? "ok" : "above" } ?? ""
  }

  static func json(_ rows: [Row], fileSystem: String) -> String {
    let objects = rows.map { row in
      let members = [
        ("name", quoted(row.name)), ("unit", quoted(row.unit.rawValue)), ("ours", number(row.ours)),
        ("floor", number(row.floor)), ("ratio", number(row.ratio?.median)),
        ("ratioLow", number(row.ratio?.low)), ("ratioHigh", number(row.ratio?.high)),
        ("expected", quoted(expectation(row))), ("met", row.isMet.map { "\($0)" } ?? "null"),
        ("notes", "[" + row.notes.map(quoted).joined(separator: ",") + "]"),
      ]
      return "  {" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
    }
    return "{\"fileSystem\":\(quoted(fileSystem)),\"rows\":[\n"
      + objects.joined(separator: ",\n") + "\n]}"
  }

  private static func number(_ number: Double?) -> String {
    number.map { $0.isFinite ? fixed($0, 3) : "null" } ?? "null"
  }

  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case _ where scalar.value < 0x20: quoted += " "
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

/// Returns a number with the given number of digits after the point.
func fixed(_ number: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", number) }
