import Wormhole
import WormholeTerminals
import WormholeWorkshop

/// Read-modify-write of one number by eight processes at once.
extension UpdateRows {
  private static let processes = 8

  static func measureContended(_ bench: Bench) throws -> [Row] {
    let (value, raw) = try bench.value("update-8")
    try value.replace(with: SharedCount.content(0))
    try raw.publish(RawValue.content(0))
    let place = bench.path + "/update-8"
    let ours = try (0..<processes).map { _ in try Worker("increment", [place, "value"]) }
    let floor = try (0..<processes).map { _ in try Worker("increment-raw", [place, "raw"]) }
    var counts = [[Double]](repeating: [Double](repeating: 0, count: processes), count: 2)
    func round(_ workers: [Worker], _ which: Int) throws -> Double {
      let (time, done) = try Worker.race(workers, bench.isQuick ? "100" : "300")
      counts[which] = zip(counts[which], done).map(+)
      return time
    }
    let results = try alternate(
      rounds: bench.rounds, [{ try round(ours, 0) }, { try round(floor, 1) }])
    try check(SharedCount.number(try value.read()), UInt64(counts[0].reduce(0, +)))
    try check(try raw.read(), UInt64(counts[1].reduce(0, +)))
    let speeds = results.map { "\(fixed(1e9 / $0.median, 0))/s" }
    return [
      Row(
        "update by 8 processes / flock", ours: results[0], floor: results[1],
        expected: .ratioAtMost(1.5),
        notes: [
          "\(speeds[0]) against \(speeds[1]); none lost",
          "share of the luckiest and the unluckiest process: \(shares(counts[0])), raw \(shares(counts[1]))",
        ])
    ]
  }

  private static func shares(_ counts: [Double]) -> String {
    let all = counts.reduce(0, +) / 100
    return "\(fixed((counts.max() ?? 0) / all, 0)) % and \(fixed((counts.min() ?? 0) / all, 0)) %"
  }

  static func serve(_ directory: String, name: String) throws {
    let value = try SharedContainer(path: directory).value(name)
    try serve { try SharedCount.increment(value) }
  }

  static func serveRaw(_ directory: String, name: String) throws {
    let raw = try RawValue(directory, name)
    try serve { try raw.increment() }
  }

  // Each line is a time in milliseconds; the answer is the number of operations in that time.
  private static func serve(_ operation: () throws -> Void) throws {
    try Worker.serve { line in
      let end = ContinuousClock.now + .milliseconds(Int(line) ?? 0)
      var count = 0
      while ContinuousClock.now < end {
        try operation()
        count += 1
      }
      return "\(count)"
    }
  }
}
