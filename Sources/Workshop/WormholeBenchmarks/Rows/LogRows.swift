import Wormhole
import WormholePropertyLists
import WormholeWorkshop

/// Appending to a log and reading it, against a bare file that is created and renamed, and against the
/// library's own publication of a value.
enum LogRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let container = try bench.container("log")
    let log = container.log("l")
    let raw = try RawQueue(bench.directory("log-raw"))
    let value = container.value("v")
    return try [
      bench.compare(
        "log: append / create + rename", rounds: bench.shortRounds, runs: 4,
        ours: { try log.append(SharedCount.payload) }, floor: { try raw.send() }),
      bench.compare(
        "log: append / publish a value", rounds: bench.shortRounds, runs: 4,
        ours: { try log.append(SharedCount.payload) },
        floor: { try value.replace(with: SharedCount.payload) }),
      reading(bench),
    ]
  }

  /// Measures reading a message for a named subscriber, which stores its position.
  private static func reading(_ bench: Bench) throws -> Row {
    let container = try bench.container("log-read")
    let log = container.log("l")
    let value = container.value("v")
    let reader = try log.subscribe("a")
    return try bench.compare(
      "log: read, named / update a value", rounds: bench.shortRounds,
      ours: {
        for _ in 0..<4 { try log.append(SharedCount.payload) }
        return try nanosecondsPerRun(4) { _ = try reader.next(until: .now) }
      },
      floor: {
        try nanosecondsPerRun(4) {
          try value.update { $0 = PropertyListValue(($0?.intValue ?? 0) + 1) }
        }
      })
  }
}
