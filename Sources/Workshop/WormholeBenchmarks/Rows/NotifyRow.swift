import Wormhole
import WormholeSystem
import WormholeWorkshop

/// Posting a notification, which takes no lock, against one rename.
enum NotifyRow {
  static func measure(_ bench: Bench) throws -> [Row] {
    let notification = try bench.container("notify").notification("bell")
    let directory = try FileDescriptor.open(
      try bench.directory("notify-raw"), [.readOnly, .directory])
    _ = try FileDescriptor.open(
      "bell-0", at: directory.rawValue, [.writeOnly, .create, .exclusive])
    var number = 0
    return [
      try bench.compare(
        "post a notification / rename", rounds: bench.shortRounds, runs: 30,
        expected: .ratioAtMost(1.15),
        ours: { try notification.post() },
        floor: {
          try rename(
            "bell-\(number)", at: directory.rawValue, to: "bell-\(number + 1)",
            at: directory.rawValue)
          number += 1
        })
    ]
  }
}
