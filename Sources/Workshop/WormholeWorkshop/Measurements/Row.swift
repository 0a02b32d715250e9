/// One line of the table: our time, the floor's time, and their ratio.
package struct Row {
  package enum Unit: String {
    case microseconds = "µs"
    case milliseconds = "ms"
    case bytes = "B"
    case perSecond = "/s"

    /// The number of measured units (nanoseconds, for times) in one unit of the row.
    package var scale: Double {
      switch self {
      case .microseconds: 1_000
      case .milliseconds: 1_000_000
      case .bytes, .perSecond: 1
      }
    }
  }

  /// The expected result; less is better in every row.
  package enum Expectation {
    case ratioAtMost(Double)
    case oursAtMost(Double)
  }

  /// The ratios of rounds, ours to the floor of the same round. A tenth of them is below `low` and
  /// a tenth above `high`, so the distance between them shows the noise.
  package struct Ratio {
    package let median: Double
    package let low: Double
    package let high: Double
  }

  package let name: String
  package let unit: Unit
  package let ours: Double?
  package let floor: Double?
  package let ratio: Ratio?
  package let expectation: Expectation?
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
    self.ours = ours.isEmpty ? nil : ours.median / unit.scale
    self.floor = floor.isEmpty ? nil : floor.median / unit.scale
    ratio =
      ratios.isEmpty
      ? nil
      : Ratio(median: ratios.median, low: ratios.quantile(0.1), high: ratios.quantile(0.9))
    self.expectation = expectation
    self.notes = notes
  }

  /// Whether the expectation is met; nil if there is none or nothing was measured.
  package var isMet: Bool? {
    guard let ours else { return expectation == nil ? nil : false }
    switch expectation {
    case .ratioAtMost(let limit): return ratio.map { $0.median <= limit }
    case .oursAtMost(let limit): return ours <= limit
    case nil: return nil
    }
  }
}
