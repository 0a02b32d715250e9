import AppGroup
import Dispatch
import PropertyLists
import RivalCalls
import Synchronization
import SystemCalls

/// Our side of the game: each received pong sends the next ping.
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
  /// Ends the listening.
  private let stop = Mutex<@Sendable () -> Void>({})

  /// - Parameter asTask: Whether to listen with `for await` instead of a handler.
  init(_ container: SharedContainer, asTask: Bool = false) throws {
    ping = container.value(asTask ? "task-ping" : "ping")
    if asTask {
      try hearAsTask(container.value("task-pong"))
    } else {
      try hear(container.value("pong"))
    }
  }

  private func hear(_ pong: Value) throws {
    let heard = try pong.observe(on: DispatchQueue(label: "game")) {
      [weak self] snapshot in
      Self.orDie { try self?.hear(SharedCount.number(snapshot.propertyList())) }
    }
    stop.withLock { $0 = { heard.cancel() } }
  }

  private func hearAsTask(_ pong: Value) throws {
    let pongs = try pong.snapshots()
    let heard = Task { [weak self] in
      for await snapshot in pongs {
        Self.orDie { try self?.hear(SharedCount.number(snapshot.propertyList())) }
      }
    }
    stop.withLock { $0 = { heard.cancel() } }
  }

  deinit { stop.withLock { $0() } }

  /// - Returns: The nanoseconds of each half round trip.
  func play(_ count: Int) throws -> [Double] {
    state.withLock {
      $0.left = count
      $0.times = []
    }
    try serve()
    guard isOver.wait(timeout: .now() + 60) == .success else {
      throw Failure(description: "the other process does not answer")
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

  /// A listener has no caller to throw to.
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

  func send(_ number: UInt64) throws(Errno) { try sent.publish(RawValue.content(number)) }

  /// Waits until the value holds another number than the last one.
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
