import Wormhole
import WormholeInspection
import WormholePeers

/// The screen of `top` as lines: a title, tables that share the rows, and the keys.
struct TopDrawing {
  let activity: Activity
  /// The seconds since the beginning.
  let second: Int
  /// Nil before the first look through the container.
  let report: ContainerReport?
  let peers: [PeerWork]
  /// Why there is no newer report; nil if nothing is wrong.
  var problem: String?
  let columns: Int
  let rows: Int
  let hasColour: Bool

  /// The title and the keys.
  private static let frameRows = 2

  /// The lines, at most as many and as wide as the terminal.
  var lines: [String] {
    let space = max(0, rows - Self.frameRows)
    var rest = space
    // Each of the others gets a part of the remaining rows; the busiest names get the rest.
    let tables = tables.filter { !$0.rows.isEmpty }
    var below: [String] = []
    for (index, table) in tables.enumerated() {
      let share = max(2, (rest - rest / 3) / (tables.count - index))
      let lines = lines(of: table, atMost: min(share, rest))
      below += lines
      rest -= lines.count
    }
    let above = lines(of: busiest, atMost: rest)
    let empty = Array(repeating: "", count: max(0, rest - above.count))
    let all =
      [styled(fitted(title, fills: true), "7")] + above + empty + below + [
        styled(fitted(keys), "1")
      ]
    return Array(all.prefix(max(rows, 1)))
  }

  private var title: String {
    let rate = "\(Self.text(activity.rate(at: second)))/s, \(activity.total) events"
    let path = report?.path ?? ""
    let name = path.split(separator: "/").last.map(String.init) ?? path
    let place = path.count + rate.count + 6 <= columns ? path : name
    let gap = max(2, columns - place.count - rate.count - 3)
    return " " + place + String(repeating: " ", count: gap) + rate
  }

  private var keys: String {
    if let problem { return problem.onOneLine }
    return columns < 60 ? "q quit" : "q quit   events per second over the last \(Activity.window) s"
  }

  // MARK: Tables

  /// The tables of a status.
  private var tables: [StatusText.Table] {
    guard let report else { return [] }
    let status = StatusText(report: report, peers: peers, columns: columns, fullestFirst: true)
    return [status.leaseTable, status.queueTable, status.presenceTable, status.peerTable]
  }

  private var busiest: StatusText.Table {
    let rows = activity.rows(at: second).map { row in
      [
        Self.text(row.rate), "\(row.total)", row.subject.kind.rawValue, row.subject.name,
        row.last.change + (row.last.event.processID.map { " by \($0)" } ?? ""),
      ]
    }
    return (
      ["RATE", "EVENTS", "KIND", "NAME", "LAST"],
      rows.isEmpty ? [["-", "0", "nothing", "has happened yet", ""]] : rows
    )
  }

  /// The lines of a table: its head, as many rows as fit, and how many are left out.
  private func lines(of table: StatusText.Table, atMost limit: Int) -> [String] {
    guard limit > 1 else { return [] }
    let isCut = table.rows.count > limit - 1
    let shown = table.rows.prefix(isCut ? max(1, limit - 2) : limit - 1)
    let all = ([table.head] + shown).map { $0.map(\.onOneLine) }
    // A long name must not push the numbers out of sight.
    let widest = max(8, columns / 3)
    let widths = table.head.indices.map { column in
      min(widest, all.map { $0[column].count }.max() ?? 0)
    }
    var lines = all.map { row in
      let cells = zip(row, widths).enumerated().map { index, cell in
        index == row.count - 1
          ? cell.0
          : Self.cut(cell.0, cell.1)
            + String(repeating: " ", count: max(0, cell.1 - cell.0.count) + 2)
      }
      return fitted(cells.joined())
    }
    lines[0] = styled(lines[0], "2")
    if isCut, limit > 2 { lines.append(fitted("… and \(table.rows.count - shown.count) more")) }
    return lines
  }

  // MARK: Text

  /// `0`, `0.3`, `12`.
  private static func text(_ rate: Double) -> String {
    guard rate < 10 else { return "\(Int(rate.rounded()))" }
    let tenths = Int((rate * 10).rounded())
    return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
  }

  private static func cut(_ text: String, _ width: Int) -> String {
    text.count <= width ? text : text.prefix(max(0, width - 1)) + "…"
  }

  /// The last column stays empty: some terminals wrap when it is filled.
  private func fitted(_ line: String, fills: Bool = false) -> String {
    let width = max(1, columns - 1)
    let cut = Self.cut(line, width)
    return fills ? cut + String(repeating: " ", count: width - cut.count) : cut
  }

  private func styled(_ line: String, _ style: String) -> String {
    hasColour ? "\u{1B}[\(style)m\(line)\u{1B}[0m" : line
  }
}
