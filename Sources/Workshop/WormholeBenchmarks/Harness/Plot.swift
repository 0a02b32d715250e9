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

  private enum Layout {
    static let rowHeight = 22.0
    static let top = 56.0
    static let names = 400.0
    static let axis = 420.0
    static let ratios = 70.0
    static let width = names + axis + ratios
  }

  /// A row to draw, in microseconds.
  private struct Bar {
    let name: String
    let floor: Double
    let ours: Double
    let ratio: Double

    /// Whether the floor is a rival's, which the name of the row shows.
    var isBesideRival: Bool {
      ["/ sqlite", "/ redis", "/ d-bus", "/ userdefaults"].contains {
        name.lowercased().contains($0)
      }
    }
  }

  private var bars: [Bar] {
    report.rows.compactMap { row in
      guard let floor = row.floor, let ours = row.ours, let ratio = row.ratio, floor > 0, ours > 0
      else { return nil }
      switch row.unit {
      case Row.Unit.microseconds.rawValue:
        return Bar(name: row.name, floor: floor, ours: ours, ratio: ratio)
      case Row.Unit.milliseconds.rawValue:
        return Bar(name: row.name, floor: floor * 1_000, ours: ours * 1_000, ratio: ratio)
      default: return nil
      }
    }
  }

  var svg: String {
    let bars = bars
    let times = bars.flatMap { [$0.floor, $0.ours] }
    let low = (times.min().map { log10($0).rounded(.down) } ?? 0)
    let high = max(low + 1, times.max().map { log10($0).rounded(.up) } ?? 1)
    func x(_ microseconds: Double) -> Double {
      Layout.names + (log10(microseconds) - low) / (high - low) * Layout.axis
    }
    let bottom = Layout.top + Double(bars.count) * Layout.rowHeight
    var lines = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(number(Layout.width)) \(number(bottom + 20))" \
      font-family="sans-serif" font-size="12">
      """, Self.style,
      text("Time of one operation on \(report.fileSystem)", x: 12, y: 20, kind: "title"),
      #"<circle class="floor" cx="16" cy="36" r="4"/>"#, text("bare system calls", x: 26, y: 40),
      #"<circle class="ours" cx="146" cy="36" r="4"/>"#, text("this package", x: 156, y: 40),
      #"<circle class="rival" cx="256" cy="36" r="4"/>"#, text("another program", x: 266, y: 40),
      text("ratio", x: Layout.width - 8, y: 40, kind: "end"),
    ]
    for power in Int(low)...Int(high) {
      let place = x(pow(10, Double(power)))
      lines.append(line(place, Layout.top - 8, x2: place, y2: bottom, kind: "grid"))
      lines.append(text(Self.time(power), x: place, y: bottom + 14, kind: "middle"))
    }
    for (index, bar) in bars.enumerated() {
      let y = Layout.top + (Double(index) + 0.5) * Layout.rowHeight
      lines += [
        text(bar.name, x: 12, y: y + 4), line(x(bar.floor), y, x2: x(bar.ours), y2: y, kind: "gap"),
        dot(x(bar.floor), y, kind: bar.isBesideRival ? "rival" : "floor"),
        dot(x(bar.ours), y, kind: "ours"),
        text(fixed(bar.ratio, 2), x: Layout.width - 8, y: y + 4, kind: "end"),
      ]
    }
    return (lines + ["</svg>"]).joined(separator: "\n")
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
