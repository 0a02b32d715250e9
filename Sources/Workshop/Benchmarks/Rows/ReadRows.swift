import AppGroup
import SystemCalls

/// Reading a value of 200 bytes: as bytes, and decoded.
enum ReadRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let value = try bench.container("read").value("value")
    let raw = try RawValue(bench.path + "/read", "raw")
    try value.replace(with: SharedCount.content(7))
    try raw.publish(RawValue.content(7))
    let results = try alternate(
      rounds: bench.shortRounds, runs: 60,
      [
        { _ = try value.snapshot().bytes() }, { _ = try value.read() }, { _ = try raw.read() },
      ])
    let floor = results[2]
    return [
      Row("read, bytes / open + fstat + read", ours: results[0], floor: floor),
      Row("read, decoded / open + fstat + read", ours: results[1], floor: floor),
    ]
  }
}
