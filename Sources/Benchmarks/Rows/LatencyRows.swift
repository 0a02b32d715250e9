import AppGroup
import Dispatch
import PropertyLists
import Synchronization
import SystemCalls

/// From a write in one process to the listener of another: two processes play ping-pong through two
/// values, and half a round trip is counted. The floor does the same with bare calls: exchange,
/// a read that waits for inotify, and open and read of the file.
enum LatencyRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let container = try bench.container("latency")
    _ = try Paddle(bench.path + "/latency", hears: "raw-ping", sends: "raw-pong")
    let other = try Worker(.echo, [bench.path + "/latency"])
    let rawOther = try Worker(.rawEcho, [bench.path + "/latency"])
    let game = try Game(container)
    let paddle = try Paddle(bench.path + "/latency", hears: "raw-pong", sends: "raw-ping")
    let count = bench.scaled(100)
    var tails: [[Double]] = [[], []]
    let results = try alternate(
      rounds: bench.rounds,
      [
        {
          let times = try game.play(count)
          tails[0].append(times.quantile(0.99))
          return times.median
        },
        {
          let times = try paddle.play(count)
          tails[1].append(times.quantile(0.99))
          return times.median
        },
      ])
    // The workers play as long as they are held.
    withExtendedLifetime((other, rawOther)) {}
    return [
      Row(
        "send to listener, median / inotify", ours: results[0], floor: results[1],
        expected: .ratioAtMost(1.5)),
      Row("send to listener, 99 % / inotify", ours: tails[0], floor: tails[1]),
    ]
  }

  static func echo(_ directory: String) throws {
    let container = try SharedContainer(path: directory)
    let pong = container.value("pong")
    let observation = try container.value("ping").observe(on: DispatchQueue(label: "echo")) {
      Game.orDie { [snapshot = $0] in try pong.replace(with: snapshot.propertyList() ?? 0) }
    }
    try WorkerMode.serve { _ in "" }
    observation.cancel()
  }

  static func echoRaw(_ directory: String) throws {
    let paddle = try Paddle(directory, hears: "raw-ping", sends: "raw-pong")
    Output.line("ready")
    var last: UInt64 = 0
    // The main thread waits for pings only, so another one looks for the end of the game.
    try startThread(name: "end of input") {
      while readLine() != nil {}
      Program.exit(0)
    }
    while true {
      last = try paddle.next(after: last)
      try paddle.send(last)
    }
  }
}

/// Our side of the game: each pong that the listener hears sends the next ping.
final class Game: Sendable {
  private struct State {
    var number: UInt64 = 0
    var left = 0
    var sent = ContinuousClock.now
    var times: [Double] = []
  }

  private let ping: Value
  private let state = Mutex(State())
  private let isOver = DispatchSemaphore(value: 0)
  private let observation: Mutex<Observation?> = Mutex(nil)

  init(_ container: SharedContainer) throws {
    ping = container.value("ping")
    let heard = try container.value("pong").observe(on: DispatchQueue(label: "game")) {
      [weak self] snapshot in
      Self.orDie { try self?.hear(SharedCount.number(snapshot.propertyList())) }
    }
    observation.withLock { $0 = heard }
  }

  /// - Returns: the nanoseconds of each half round trip.
  func play(_ count: Int) throws -> [Double] {
    state.withLock {
      $0.left = count
      $0.times = []
    }
    try serve()
    guard isOver.wait(timeout: .now() + 60) == .success else {
      throw Worker.Failure(description: "the other process does not answer")
    }
    return state.withLock { $0.times }
  }

  private func serve() throws {
    let number = state.withLock { state in
      state.number += 1
      state.sent = .now
      return state.number
    }
    try ping.replace(with: SharedCount.content(number))
  }

  private func hear(_ number: UInt64) throws {
    let now = ContinuousClock.now
    let isLast = state.withLock { state -> Bool? in
      guard number == state.number else { return nil }
      state.times.append((now - state.sent).nanoseconds / 2)
      state.left -= 1
      return state.left == 0
    }
    guard let isLast else { return }
    if isLast { isOver.signal() } else { try serve() }
  }

  /// A listener has nobody to throw to.
  static func orDie(_ body: () throws -> Void) {
    do {
      try body()
    } catch {
      Output.problem("\(error)")
      Program.exit(1)
    }
  }
}

/// The floor's side of the game.
final class Paddle {
  private let heard: RawValue
  private let sent: RawValue
  private let events: FileDescriptor
  private var number: UInt64 = 0

  init(_ directory: String, hears: String, sends: String) throws {
    heard = try RawValue(directory, hears)
    sent = try RawValue(directory, sends)
    try sent.publish(RawValue.content(0))
    events = try .blockingEventQueue()
    _ = try events.addWatch(directory + "/values/" + hears, [.movedTo, .onlyDirectory])
  }

  func send(_ number: UInt64) throws(Errno) {
    try sent.publish(RawValue.content(number))
  }

  /// Waits until another number than the last one is there.
  func next(after last: UInt64) throws(Errno) -> UInt64 {
    while true {
      _ = try events.takeEvents { _, _ in }
      let number = try heard.read()
      if number != last { return number }
    }
  }

  func play(_ count: Int) throws(Errno) -> [Double] {
    var times: [Double] = []
    for _ in 0..<count {
      let begin = ContinuousClock.now
      try send(number + 1)
      number = try next(after: number)
      times.append((ContinuousClock.now - begin).nanoseconds / 2)
    }
    return times
  }
}
