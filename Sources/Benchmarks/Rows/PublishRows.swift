import AppGroup
import SystemCalls

/// Replacing a value of 200 bytes, against the bare calls and against what most programs do.
enum PublishRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let value = try bench.container("publish").value("value")
    let raw = try RawValue(bench.path + "/publish", "raw")
    let over = try RawValue(bench.path + "/publish", "raw-over")
    let ours = SharedCount.content(1)
    let theirs = RawValue.content(1)
    let count = 4
    let results = try alternate(
      rounds: bench.shortRounds,
      [
        { try nanosecondsPerRun(count) { try value.replace(with: ours) } },
        { try nanosecondsPerRun(count) { try raw.publish(theirs) } },
      ])
    let slow = try alternate(
      rounds: bench.rounds * 2,
      [
        { try nanosecondsPerRun(count) { try value.replace(with: ours) } },
        { try nanosecondsPerRun(count) { try over.publishByRenamingOver(theirs) } },
      ])
    let size = try value.snapshot().bytes()?.count ?? 0
    return [
      Row(
        "publish / exchange + unlink", ours: results[0], floor: results[1],
        expected: .ratioAtMost(1.5), notes: ["\(size) bytes"]),
      Row(
        "publish / rename over", ours: slow[0], floor: slow[1],
        expected: try bench.fileSystemName() == "ext4" ? .ratioAtMost(0.2) : nil),
    ]
  }

  static func measureDurable(_ bench: Bench) throws -> [Row] {
    let value = try bench.container("durable").value("value")
    let raw = try RawValue(bench.path + "/durable", "raw")
    let ours = SharedCount.content(1)
    let theirs = RawValue.content(1)
    let count = bench.scaled(30)
    let results = try alternate(
      rounds: bench.rounds,
      [
        { try nanosecondsPerRun(count) { try value.replace(with: ours, durability: .durable) } },
        { try nanosecondsPerRun(count) { try raw.publish(theirs, durably: true) } },
      ])
    return [Row("publish, durable / fsync ×2", ours: results[0], floor: results[1])]
  }
}
