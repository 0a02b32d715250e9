import Wormhole

/// Read-modify-write of one number. The floor locks with a `flock` that waits, reads, and makes the same
/// writes.
package enum UpdateRows {
  package static func measureAlone(_ bench: Bench) throws -> [Row] {
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

  package static func check(_ found: UInt64, _ expected: UInt64) throws {
    guard found == expected else {
      throw Failure(description: "\(expected) updates were made and \(found) counted")
    }
  }
}
