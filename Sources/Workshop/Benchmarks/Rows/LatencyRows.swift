import AppGroup
import Dispatch
import PropertyLists

/// The latency from a write in one process to the listener in another. Two processes play ping-pong
/// through two values, and half a round trip counts. The floor does the same with bare calls:
/// exchange, a read that waits for inotify, and open and read of the file.
enum LatencyRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let container = try bench.container("latency")
    _ = try Paddle(bench.path + "/latency", hears: "raw-ping", sends: "raw-pong")
    let other = try Worker("echo", [bench.path + "/latency"])
    let taskOther = try Worker("echo-task", [bench.path + "/latency"])
    let rawOther = try Worker("echo-raw", [bench.path + "/latency"])
    let game = try Game(container)
    let taskGame = try Game(container, asTask: true)
    let paddle = try Paddle(bench.path + "/latency", hears: "raw-pong", sends: "raw-ping")
    let count = bench.scaled(100)
    var tails: [[Double]] = [[], []]
    func median(_ times: [Double], _ tail: Int) -> Double {
      tails[tail].append(times.quantile(0.99))
      return times.median
    }
    let results = try alternate(
      rounds: bench.rounds,
      [
        { median(try game.play(count), 0) }, { median(try paddle.play(count), 1) },
        { try taskGame.play(count).median },
      ])
    // The workers play until they are released.
    withExtendedLifetime((other, taskOther, rawOther)) {}
    return [
      Row(
        "send to listener, median / inotify", ours: results[0], floor: results[1],
        expected: .ratioAtMost(1.5)),
      Row("send to task, median / inotify", ours: results[2], floor: results[1]),
      Row("send to listener, 99 % / inotify", ours: tails[0], floor: tails[1]),
    ]
  }

  static func echo(_ directory: String) throws {
    let container = try SharedContainer(path: directory)
    let pong = container.value("pong")
    let observation = try container.value("ping").observe(on: DispatchQueue(label: "echo")) {
      Game.orDie { [snapshot = $0] in try pong.replace(with: snapshot.propertyList() ?? 0) }
    }
    try Worker.serve { _ in "" }
    observation.cancel()
  }

  static func echoTask(_ directory: String) throws {
    let container = try SharedContainer(path: directory)
    let pong = container.value("task-pong")
    let pings = try container.value("task-ping").snapshots()
    let task = Task {
      for await ping in pings {
        Game.orDie { try pong.replace(with: ping.propertyList() ?? 0) }
      }
    }
    try Worker.serve { _ in "" }
    task.cancel()
  }

  static func echoRaw(_ directory: String) throws {
    let paddle = try Paddle(directory, hears: "raw-ping", sends: "raw-pong")
    var last: UInt64 = 0
    try Worker.repeatUntilEnd {
      last = try paddle.next(after: last)
      try paddle.send(last)
    }
  }
}
