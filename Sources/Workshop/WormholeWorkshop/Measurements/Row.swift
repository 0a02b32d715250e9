import WormholeTerminals

/// One line of the table: our time, the floor's time, and their ratio.
package struct Row: Codable {
  package enum Unit: String, Codable {
    case microseconds = "µs"
    case milliseconds = "ms"
    case bytes = "B"
    case perSecond = "/s"
    case count = ""

    fileprivate var suffix: String { self == .count ? "" : " " + rawValue }

    /// The number of measured units (nanoseconds, for times) in one unit of the row.
    package var scale: Double {
      switch self {
      case .microseconds: 1_000
      case .milliseconds: 1_000_000
      case .bytes, .perSecond, .count: 1
      }
    }
  }

  /// The expected result; less is better in every row.
  package enum Expectation {
    case ratioAtMost(Double)
    case oursAtMost(Double)
  }

  package let name: String
  package let unit: Unit
  package let ours: Double?
  package let floor: Double?
  /// The median of the ratios of rounds, ours to the floor of the same round.
  package let ratio: Double?
  /// A tenth of the ratios is below this one, and a tenth above the next: their distance shows the
  /// noise.
  package let ratioLow: Double?
  package let ratioHigh: Double?
  /// The expectation in words.
  package let expected: String
  /// Whether the expectation is met; nil if there is none or nothing was measured.
  package let met: Bool?
  package let notes: [String]

  /// Creates a row from measurements in the same rounds.
  ///
  /// - Parameters:
  ///   - ours: Empty if nothing was measured.
  ///   - floor: Empty for a row without a floor.
  package init(
    _ name: String, _ unit: Unit = .microseconds, ours: [Double], floor: [Double] = [],
    expected expectation: Expectation? = nil, notes: [String] = []
  ) {
    let ratios = zip(ours, floor).map { $0 / $1 }
    self.name = name
    self.unit = unit
    self.ours = ours.quantile(0.5).map { $0 / unit.scale }
    self.floor = floor.quantile(0.5).map { $0 / unit.scale }
    ratio = ratios.quantile(0.5)
    ratioLow = ratios.quantile(0.1)
    ratioHigh = ratios.quantile(0.9)
    switch expectation {
    case .ratioAtMost(let limit):
      expected = "≤ \(fixed(limit, 2))"
      met = self.ours == nil ? false : ratio.map { $0 <= limit }
    case .oursAtMost(let limit):
      expected = "≤ " + fixed(limit, 0) + unit.suffix
      met = self.ours.map { $0 <= limit } ?? false
    case nil: (expected, met) = ("none", nil)
    }
    self.notes = notes
  }

  fileprivate var cells: [String] {
    func amount(_ number: Double?) -> String {
      number.map { fixed($0, $0 < 100 ? 1 : 0) + unit.suffix } ?? "–"
    }
    var ratios = "–"
    if let ratio, let ratioLow, let ratioHigh {
      ratios = "\(fixed(ratio, 2)) (\(fixed(ratioLow, 2))–\(fixed(ratioHigh, 2)))"
    }
    let verdict = met.map { $0 ? "ok" : "above" } ?? ""
    return [name, amount(ours), amount(floor), ratios, expected, verdict]
  }
}

extension [Row] {
  /// Returns the rows as a table for people.
  package func table() -> [String] {
    let heading = ["row", "ours", "floor", "ratio (10–90 %)", "expected", ""]
    let cells = [heading] + map(\.cells)
    let widths = cells[0].indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
    let lines = cells.map { row in
      row.indices.map { row[$0].padded(to: widths[$0], atRight: $0 == 1 || $0 == 2) }
        .joined(separator: "  ")
    }
    return [lines[0]]
      + zip(self, lines.dropFirst()).flatMap { row, line in [line] + row.notes.map { "    " + $0 } }
  }
}
