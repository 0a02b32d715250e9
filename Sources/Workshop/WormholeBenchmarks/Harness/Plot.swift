import Foundation
import WormholeWorkshop

/// A run's rows as a drawing: for each row with a floor, the floor's time and ours on one logarithmic
/// axis, and their ratio. The floor is bare system calls, or another program or library.
struct Plot {
  private let report: Report

  /// - Parameter file: The output of a run with `--json`.
  init(file: String) throws {
    let data = try Data(contentsOf: URL(fileURLWithPath: file))
    report = try JSONDecoder().decode(Report.self, from: data)
  }

  private static let rowHeight = 22.0
  private static let top = 56.0
  private static let names = 400.0
  private static let axis = 420.0
  private static let width = names + axis + 70

  /// The rows to draw: those that measure a time, and have a floor.
  private var bars: [Row] {
    report.rows.filter { row in
      guard let floor = row.floor, let ours = row.ours, row.ratio != nil else { return false }
      return floor > 0 && ours > 0 && [.microseconds, .milliseconds].contains(row.unit)
    }
  }

  var svg: String {
    let bars = bars
    func power(_ time: Double?, _ row: Row) -> Double {
      log10((time ?? 1) * row.unit.scale / 1_000)
    }
    let powers = bars.flatMap { [power($0.floor, $0), power($0.ours, $0)] }
    let low = powers.min()?.rounded(.down) ?? 0
    let high = max(low + 1, powers.max()?.rounded(.up) ?? 1)
    func x(_ power: Double) -> Double { Self.names + (power - low) / (high - low) * Self.axis }
    let bottom = Self.top + Double(bars.count) * Self.rowHeight
    var lines = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(number(Self.width)) \(number(bottom + 20))" \
      font-family="sans-serif" font-size="12">
      """, Self.style,
      text("Time of one operation on \(report.fileSystem)", x: 12, y: 20, kind: "title"),
      #"<circle class="floor" cx="16" cy="36" r="4"/>"#, text("bare system calls", x: 26, y: 40),
      #"<circle class="ours" cx="146" cy="36" r="4"/>"#, text("this package", x: 156, y: 40),
      #"<circle class="rival" cx="256" cy="36" r="4"/>"#, text("another program", x: 266, y: 40),
      text("ratio", x: Self.width - 8, y: 40, kind: "end"),
    ]
    for power in Int(low)...Int(high) {
      let place = x(Double(power))
      lines.append(line(place, Self.top - 8, x2: place, y2: bottom, kind: "grid"))
      lines.append(text(Self.time(power), x: place, y: bottom + 14, kind: "middle"))
    }
    for (index, bar) in bars.enumerated() {
      let y = Self.top + (Double(index) + 0.5) * Self.rowHeight
      let (floor, ours) = (x(power(bar.floor, bar)), x(power(bar.ours, bar)))
      lines += [
        text(bar.name, x: 12, y: y + 4), line(floor, y, x2: ours, y2: y, kind: "gap"),
        dot(floor, y, kind: Self.isBesideRival(bar) ? "rival" : "floor"),
        dot(ours, y, kind: "ours"),
        text(fixed(bar.ratio ?? 0, 2), x: Self.width - 8, y: y + 4, kind: "end"),
      ]
    }
    return (lines + ["</svg>"]).joined(separator: "\n")
  }

  /// Whether the floor is a rival's, which the name of the row shows.
  private static func isBesideRival(_ row: Row) -> Bool {
    ["/ sqlite", "/ redis", "/ d-bus", "/ userdefaults", "/ propertylist", "/ the same"].contains {
      row.name.lowercased().contains($0)
    }
  }

  /// The colours fit a light and a dark page.
  private static let style = """
    <style>
    text { fill: #24292f } .title { font-weight: bold } .end { text-anchor: end }
    .middle { text-anchor: middle } .grid { stroke: #d0d7de } .gap { stroke: #8c959f; stroke-width: 2 }
    .floor { fill: #8c959f } .ours { fill: #0969da } .rival { fill: #bc4c00 }
    @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .grid { stroke: #30363d } .ours { fill: #58a6ff }
    .rival { fill: #f0883e }
    }
    </style>
    """

  private static func time(_ power: Int) -> String {
    switch power {
    case ..<3: "\(fixed(pow(10, Double(power)), max(0, -power))) µs"
    case ..<6: "\(fixed(pow(10, Double(power - 3)), 0)) ms"
    default: "\(fixed(pow(10, Double(power - 6)), 0)) s"
    }
  }

  private func text(_ text: String, x: Double, y: Double, kind: String = "") -> String {
    let plain = text.replacingOccurrences(of: "&", with: "&amp;")
      .replacingOccurrences(of: "<", with: "&lt;")
    return #"<text class="\#(kind)" x="\#(number(x))" y="\#(number(y))">\#(plain)</text>"#
  }

  private func line(
    _ x1: Double, _ y1: Double, x2: Double, y2: Double, kind: String
  ) -> String {
    #"<line class="\#(kind)" x1="\#(number(x1))" y1="\#(number(y1))" x2="\#(number(x2))" y2="\#(number(y2))"/>"#
  }

  private func dot(_ x: Double, _ y: Double, kind: String) -> String {
    #"<circle class="\#(kind)" cx="\#(number(x))" cy="\#(number(y))" r="4"/>"#
  }

  private func number(_ number: Double) -> String { fixed(number, 1) }
}
