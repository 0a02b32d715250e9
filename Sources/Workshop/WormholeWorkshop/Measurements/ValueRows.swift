import Wormhole

/// Replacing a value of 200 bytes, against the bare calls and against the calls of most programs; and
/// reading it.
package enum ValueRows {
  package static func measure(_ bench: Bench) throws -> [Row] {
    let value = try bench.container("publish").value("value")
    let raw = try RawValue(bench.path + "/publish", "raw")
    let over = try RawValue(bench.path + "/publish", "raw-over")
    let ours = SharedCount.content(1)
    let theirs = RawValue.content(1)
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
        expected: try bench.fileSystemName() == "ext4" ? .ratioAtMost(0.2) : nil,
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
    let ours = SharedCount.content(1)
    let theirs = RawValue.content(1)
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
    let value = try bench.container("durable").value("value")
    let raw = try RawValue(bench.path + "/durable", "raw")
    let ours = SharedCount.content(1)
    let theirs = RawValue.content(1)
    return [
      try bench.compare(
        "publish, durable / fsync ×2", rounds: bench.rounds, runs: bench.scaled(30),
        ours: { try value.replace(with: ours, durability: .durable) },
        floor: { try raw.publish(theirs, durably: true) })
    ]
  }

  /// Measures reading it: as bytes, and decoded.
  package static func measureReading(_ bench: Bench) throws -> [Row] {
    let value = try bench.container("read").value("value")
    let raw = try RawValue(bench.path + "/read", "raw")
    try value.replace(with: SharedCount.content(7))
    try raw.publish(RawValue.content(7))
    let results = try alternate(
      rounds: bench.shortRounds, runs: 60,
      [{ _ = try value.snapshot().bytes() }, { _ = try value.read() }, { _ = try raw.read() }])
    let floor = results[2]
    return [
      Row("read, bytes / open + fstat + read", ours: results[0], floor: floor),
      Row("read, decoded / open + fstat + read", ours: results[1], floor: floor),
    ]
  }
}
