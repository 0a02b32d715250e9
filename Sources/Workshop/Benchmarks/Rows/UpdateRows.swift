import AppGroup

/// Read-modify-write of one number, alone and by eight processes at once. The floor locks with a
/// `flock` that waits, reads, and makes the same writes.
enum UpdateRows {
  private static let processes = 8

  static func measureAlone(_ bench: Bench) throws -> [Row] {
    let value = try bench.container("update").value("count")
    let raw = try RawValue(bench.path + "/update", "raw")
    let over = try RawValue(bench.path + "/update", "raw-over")
    let increment = { try SharedCount.increment(value) }
    let rows = [
      try bench.compare(
        "update / flock + read + writes", rounds: bench.shortRounds, runs: 4,
        expected: .ratioAtMost(1.5), ours: increment, floor: { try raw.increment() }),
      try bench.compare(
        "update, 50 in a row / flock + read + rename over", rounds: bench.rounds, runs: 50,
        expected: try bench.fileSystemName() == "ext4" ? .ratioAtMost(0.2) : nil,
        ours: increment, floor: { try over.incrementByRenamingOver() }),
      try together(bench),
    ]
    let done = UInt64(4 * (bench.shortRounds + 1))
    try check(try raw.read(), done)
    try check(SharedCount.number(try value.read()), done + UInt64(50 * (bench.rounds + 1)))
    return rows
  }

  private static func together(_ bench: Bench) throws -> Row {
    let container = try bench.container("update-2")
    let names = ["a", "b"]
    let values = ["c", "d"].map(container.value)
    return try bench.compare(
      "update of 2 values in one step / 2 updates", rounds: bench.shortRounds, runs: 4,
      ours: {
        try container.update(names) { values in
          for name in names {
            values[name] = SharedCount.content(SharedCount.number(values[name]) + 1)
          }
        }
      }, floor: { for value in values { try SharedCount.increment(value) } })
  }

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

  private static func check(_ found: UInt64, _ expected: UInt64) throws {
    guard found == expected else {
      throw Failure(description: "\(expected) updates were made and \(found) counted")
    }
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
