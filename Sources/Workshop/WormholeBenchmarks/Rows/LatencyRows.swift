import Wormhole
import WormholeTerminals
import WormholeWorkshop

/// The latency from a write in one process to the listener in another. Two processes play ping-pong
/// through two values, and half a round trip counts. The floor does the same with bare calls:
/// exchange, a read that waits for inotify, and open and read of the file. For a listener on a queue
/// or in a task, a bare thread makes these calls and hands the number over.
enum LatencyRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let container = try bench.container("latency")
    let directory = bench.path + "/latency"
    let workers = try Ear.allCases.map { try Worker("echo", [directory, $0.rawValue]) }
    let games = try Ear.allCases.flatMap { ear in
      try sides(container, directory, ear, hears: "pong", sends: "ping").map { try Game($0, ear) }
    }
    let count = bench.scaled(100)
    let polling = try SQLiteListener(try bench.directory("latency-sqlite"))
    var tails = games.map { _ in [Double]() }
    let results = try alternate(
      rounds: bench.rounds,
      games.enumerated().map { index, game -> () throws -> Double in
        {
          let times = try game.play(count)
          tails[index].append(times.quantile(0.99) ?? 0)
          return times.median
        }
      } + [{ try (0..<count).compactMap { _ in try polling?.notice() }.median }])
    for game in games { try game.end() }
    // The workers play until they are released.
    withExtendedLifetime(workers) {}
    func row(_ what: String, _ ours: Int, limit: Double) -> Row {
      let bare = zip(results[ours], results[1]).map { $0 / $1 }.median
      return Row(
        "send to \(what)", ours: results[ours], floor: results[ours + 1],
        expected: .ratioAtMost(limit),
        notes: ours == 0 ? [] : ["\(fixed(bare, 2)) of inotify alone"])
    }
    let rows = [
      row("blocked listener, median / inotify", 0, limit: 1.3),
      row("listener, median / inotify + queue", 2, limit: 1.25),
      row("task, median / inotify + task", 4, limit: 1.25),
      Row("send to listener, 99 % / inotify", ours: tails[2], floor: tails[1]),
      Row("send to blocked listener, 99 %", ours: tails[0], expected: .oursAtMost(300)),
    ]
    guard polling != nil else { return rows }
    return rows + [
      Row(
        "send to blocked listener / commit to SQLite, looked for each ms in Python",
        ours: results[0], floor: results[6], expected: .ratioAtMost(0.1))
    ]
  }

  /// Returns our side and the floor's.
  private static func sides(
    _ container: SharedContainer, _ directory: String, _ ear: Ear, hears: String, sends: String
  ) throws -> [any Side] {
    let (hears, sends) = ("\(ear)-\(hears)", "\(ear)-\(sends)")
    return [
      SharedSide(container, hears: hears, sends: sends),
      try Paddle(directory, hears: "raw-" + hears, sends: "raw-" + sends),
    ]
  }

  /// Runs the other process.
  static func echo(_ directory: String, _ ear: String) throws {
    guard let ear = Ear(rawValue: ear) else { return }
    let container = try SharedContainer(path: directory)
    let failure = FirstFailure()
    let sides = try sides(container, directory, ear, hears: "ping", sends: "pong")
    for side in sides { try side.echo(ear, failure) }
    try Worker.serve()
    withExtendedLifetime(sides) {}
    try failure.check()
  }
}
