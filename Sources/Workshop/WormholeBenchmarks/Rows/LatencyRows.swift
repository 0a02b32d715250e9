import Dispatch
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// The latency from a write in one process to the listener in another. Two processes play ping-pong
/// through two values, and half a round trip counts. The floor does the same with bare calls:
/// exchange, a read that waits for inotify, and open and read of the file. For a listener on a queue
/// or in a task, a bare thread makes these calls and hands the number over.
enum LatencyRows {
  /// How a listener receives a message.
  enum Ear: String, CaseIterable {
    case blocked, handler, task

    var ping: String { rawValue + "-ping" }
    var pong: String { rawValue + "-pong" }
    var rawPing: String { "raw-" + ping }
    var rawPong: String { "raw-" + pong }
  }

  private static let jobs = ["echo", "echo-raw"]

  static func measure(_ bench: Bench) throws -> [Row] {
    let container = try bench.container("latency")
    let directory = bench.path + "/latency"
    // Each side of the floor makes the values of both.
    let paddles = try Ear.allCases.map {
      try Paddle(directory, hears: $0.rawPong, sends: $0.rawPing)
    }
    let workers = try Ear.allCases.flatMap { ear in
      try jobs.map { try Worker($0, [directory, ear.rawValue]) }
    }
    let count = bench.scaled(100)
    var tails: [[Double]] = [[], []]
    func median(_ times: [Double], _ tail: Int) -> Double {
      tails[tail].append(times.quantile(0.99))
      return times.median
    }
    let blocked = try BlockedPlayer(container)
    let (ours, observation) = try handled(container)
    let (ourTask, task) = try awaited(container)
    let raw = try (Game(paddles[1], toTask: false), Game(paddles[2], toTask: true))
    var last: UInt64 = 0
    let results = try alternate(
      rounds: bench.rounds,
      [
        { try blocked.play(count).median },
        {
          median(
            try play(count, after: &last, send: paddles[0].send, next: paddles[0].next(after:)), 1)
        },
        { median(try ours.play(count), 0) }, { try raw.0.play(count).median },
        { try ourTask.play(count).median }, { try raw.1.play(count).median },
      ])
    observation.cancel()
    task.cancel()
    // The workers play until they are released.
    withExtendedLifetime(workers) {}
    func row(_ what: String, _ ours: Int, limit: Double) -> Row {
      let bare = zip(results[ours], results[1]).map { $0 / $1 }.median
      return Row(
        "send to \(what)", ours: results[ours], floor: results[ours + 1],
        expected: .ratioAtMost(limit),
        notes: ours == 0 ? [] : ["\(fixed(bare, 2)) of inotify alone"])
    }
    return [
      row("blocked listener, median / inotify", 0, limit: 1.3),
      row("listener, median / inotify + queue", 2, limit: 1.25),
      row("task, median / inotify + task", 4, limit: 1.25),
      Row("send to listener, 99 % / inotify", ours: tails[0], floor: tails[1]),
    ]
  }

  private static func handled(_ container: SharedContainer) throws -> (Game, ObservationToken) {
    let game = game(container, .handler)
    let pong = container.value(Ear.handler.pong)
    return (game, try pong.observe(on: DispatchQueue(label: "game")) { game.hear($0) })
  }

  private static func awaited(_ container: SharedContainer) throws -> (Game, Task<Void, Never>) {
    let game = game(container, .task)
    let pongs = try container.value(Ear.task.pong).snapshots()
    return (game, Task { for await pong in pongs { game.hear(pong) } })
  }

  private static func game(_ container: SharedContainer, _ ear: Ear) -> Game {
    let ping = container.value(ear.ping)
    return Game { try ping.replace(with: SharedCount.content($0)) }
  }

  /// Our player that blocks.
  private final class BlockedPlayer {
    private let ping: Value
    private var pongs: ValueSnapshots.Iterator
    private var last: UInt64 = 0

    init(_ container: SharedContainer) throws {
      ping = container.value(Ear.blocked.ping)
      pongs = try container.value(Ear.blocked.pong).snapshots().makeAsyncIterator()
    }

    func play(_ count: Int) throws -> [Double] {
      try WormholeWorkshop.play(count, after: &last) {
        try ping.replace(with: SharedCount.content($0))
      } next: { last in
        while let pong = pongs.next(until: .now + .seconds(60)) {
          let number = SharedCount.number(try pong.propertyList())
          if number != last { return number }
        }
        throw Failure(description: "the other process does not answer")
      }
    }
  }

  // MARK: The other process

  static func echo(_ directory: String, _ ear: String) throws {
    let container = try SharedContainer(path: directory)
    guard let ear = Ear(rawValue: ear) else { return }
    let (ping, pong) = (container.value(ear.ping), container.value(ear.pong))
    let answer = { @Sendable (snapshot: ValueSnapshot) in
      orDie { try pong.replace(with: snapshot.propertyList() ?? 0) }
    }
    switch ear {
    case .blocked:
      var pings = try ping.snapshots().makeAsyncIterator()
      try Worker.repeatUntilEnd {
        if let ping = pings.next(until: .now + .seconds(3_600)) { answer(ping) }
      }
    case .handler:
      let observation = try ping.observe(on: DispatchQueue(label: "echo"), answer)
      try Worker.serve { _ in "" }
      observation.cancel()
    case .task:
      let pings = try ping.snapshots()
      let task = Task { for await ping in pings { answer(ping) } }
      try Worker.serve { _ in "" }
      task.cancel()
    }
  }

  static func echoRaw(_ directory: String, _ ear: String) throws {
    guard let ear = Ear(rawValue: ear) else { return }
    let paddle = try Paddle(directory, hears: ear.rawPing, sends: ear.rawPong)
    switch ear {
    case .blocked:
      var last: UInt64 = 0
      try Worker.repeatUntilEnd {
        last = try paddle.next(after: last)
        try paddle.send(last)
      }
    case .handler, .task:
      try paddle.handOver(toTask: ear == .task) { number in orDie { try paddle.send(number) } }
      try Worker.serve { _ in "" }
    }
  }
}

extension Game {
  fileprivate func hear(_ snapshot: ValueSnapshot) {
    orDie { hear(SharedCount.number(try snapshot.propertyList())) }
  }

  /// The floor's player that is called.
  fileprivate convenience init(_ paddle: Paddle, toTask: Bool) throws {
    self.init { try paddle.send($0) }
    try paddle.handOver(toTask: toTask) { self.hear($0) }
  }
}
