import Wormhole

/// Replacing a value of 200 bytes, against the bare calls and against the calls of most programs; and
/// reading it.
package enum ValueRows {
  private static let ours = SharedCount.content(1)
  private static let theirs = RawValue.content(1)

  package static func measure(_ bench: Bench) throws -> [Row] {
    let (value, raw) = try bench.value("publish")
    let over = try RawValue(bench.path + "/publish", "raw-over")
    let publish: () throws -> Void = { try value.replace(with: ours) }
    let results = try alternate(
      rounds: bench.shortRounds, runs: 4, [publish, { try raw.publish(theirs) }])
    // Many in a row: renaming over a file starts to write the new blocks out, and the next rename
    // waits for that.
    let slow = try alternate(
      rounds: bench.rounds, runs: 50, [publish, { try over.publishByRenamingOver(theirs) }])
    let size = try value.snapshot().bytes()?.count ?? 0
    return [
      Row(
        "publish / exchange + unlink", ours: results[0], floor: results[1],
        expected: .ratioAtMost(1.5), notes: ["\(size) bytes"]),
      Row(
        "publish, 50 in a row / rename over", ours: slow[0], floor: slow[1],
        expected: try bench.onExt4(0.2),
        notes: [
          "the bare exchange + unlink takes \(fixed(results[1].median / slow[1].median, 2)) of it"
        ]),
    ]
  }

  /// Measures the first publication after a quiet second, which waits until its content is written.
  /// A process that has not published the value lately waits in the same way, which saves the
  /// pauses here.
  package static func measureLone(_ bench: Bench) throws -> [Row] {
    let place = try bench.directory("lone")
    let raw = try RawValue(place, "raw")
    let count = bench.scaled(30)
    let results = try alternate(
      rounds: bench.rounds,
      [
        {
          let values = try (0..<count).map { _ in try SharedContainer(path: place).value("value") }
          var next = values.makeIterator()
          return try nanosecondsPerRun(count) { try next.next()?.replace(with: ours) }
        },
        { try nanosecondsPerRun(count) { try raw.publish(theirs) } },
        { try nanosecondsPerRun(count) { try raw.publish(theirs, durably: true) } },
      ])
    return [
      Row(
        "publish, alone in its second / fsync ×2", ours: results[0], floor: results[2],
        expected: .ratioAtMost(1),
        notes: ["exchange + unlink takes \(fixed(results[1].median / 1_000, 1)) µs"])
    ]
  }

  package static func measureDurable(_ bench: Bench) throws -> [Row] {
    let (value, raw) = try bench.value("durable")
    return [
      try bench.compare(
        "publish, durable / fsync ×2", rounds: bench.rounds, runs: bench.scaled(30),
        ours: { try value.replace(with: ours, durability: .durable) },
        floor: { try raw.publish(theirs, durably: true) })
    ]
  }

  /// Measures reading it: as bytes, and decoded.
  package static func measureReading(_ bench: Bench) throws -> [Row] {
    let (value, raw) = try bench.value("read")
    try value.replace(with: ours)
    try raw.publish(theirs)
    let results = try alternate(
      rounds: bench.shortRounds, runs: 60,
      [{ _ = try value.snapshot().bytes() }, { _ = try value.read() }, { _ = try raw.read() }])
    return [
      Row("read, bytes / open + fstat + read", ours: results[0], floor: results[2]),
      Row("read, decoded / open + fstat + read", ours: results[1], floor: results[2]),
    ]
  }
}

/// Read-modify-write of one number. The floor locks with a `flock` that waits, reads, and makes the same
/// writes.
package enum UpdateRows {
  package static func measureAlone(_ bench: Bench) throws -> [Row] {
    let (value, raw) = try bench.value("update")
    let over = try RawValue(bench.path + "/update", "raw-over")
    let increment = { try SharedCount.increment(value) }
    let rows = [
      try bench.compare(
        "update / flock + read + writes", rounds: bench.shortRounds, runs: 4,
        expected: .ratioAtMost(1.5), ours: increment, floor: { try raw.increment() }),
      try bench.compare(
        "update, 50 in a row / flock + read + rename over", rounds: bench.rounds, runs: 50,
        expected: try bench.onExt4(0.2), ours: increment,
        floor: { try over.increment { try over.publishByRenamingOver($0) } }),
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

  package static func check(_ found: UInt64, _ expected: UInt64) throws {
    guard found == expected else {
      throw Failure(description: "\(expected) updates were made and \(found) counted")
    }
  }
}
