import Wormhole
import WormholeWorkshop

/// Read-modify-write of one number by eight processes at once.
extension UpdateRows {
  private static let processes = 8

  static func measureContended(_ bench: Bench) throws -> [Row] {
    let value = try bench.container("update-8").value("count")
    let raw = try RawValue(bench.path + "/update-8", "raw")
    try value.replace(with: SharedCount.content(0))
    try raw.publish(RawValue.content(0))
    let ours = try (0..<processes).map { _ in
      try Worker("increment", [bench.path + "/update-8", "count"])
    }
    let floor = try (0..<processes).map { _ in
      try Worker("increment-raw", [bench.path + "/update-8", "raw"])
    }
    var counts = [[Double]](repeating: [Double](repeating: 0, count: processes), count: 2)
    func round(_ workers: [Worker], _ which: Int) throws -> Double {
      let begin = ContinuousClock.now
      for worker in workers { try worker.tell("\(bench.isQuick ? 100 : 300)") }
      let done = try workers.map { Double(try $0.answer()) ?? 0 }
      let time = (ContinuousClock.now - begin).nanoseconds
      for index in done.indices { counts[which][index] += done[index] }
      return time / done.reduce(0, +)
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
    try Worker.serve { words in
      let end = ContinuousClock.now + .milliseconds(words.first.flatMap { Int($0) } ?? 0)
      var count = 0
      while ContinuousClock.now < end {
        try operation()
        count += 1
      }
      return "\(count)"
    }
  }
}
