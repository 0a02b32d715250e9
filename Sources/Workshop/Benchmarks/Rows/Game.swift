import AppGroup
import Dispatch
import RivalCalls
import Synchronization
import SystemCalls

/// A game of ping-pong whose player is called: each received pong sends the next ping.
final class Game: Sendable {
  private struct State {
    var number: UInt64 = 0
    var left = 0
    var sent = ContinuousClock.now
    var times: [Double] = []
  }

  private let send: @Sendable (UInt64) throws -> Void
  private let state = Mutex(State())
  private let isOver = DispatchSemaphore(value: 0)

  /// - Parameter send: Sends a ping with a number.
  init(_ send: @escaping @Sendable (UInt64) throws -> Void) { self.send = send }

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
    try send(number)
  }

  /// Takes a pong.
  func hear(_ number: UInt64) {
    let now = ContinuousClock.now
    let isLast = state.withLock { state -> Bool? in
      guard number == state.number else { return nil }
      state.times.append((now - state.sent).nanoseconds / 2)
      state.left -= 1
      return state.left == 0
    }
    guard let isLast else { return }
    if isLast { isOver.signal() } else { orDie { try serve() } }
  }
}

/// The same game for a player that blocks its thread.
///
/// - Parameters:
///   - send: Sends a ping with a number.
///   - next: Waits for a pong with another number than the last one.
/// - Returns: The nanoseconds of each half round trip.
func play(
  _ count: Int, after last: inout UInt64, send: (UInt64) throws -> Void,
  next: (UInt64) throws -> UInt64
) rethrows -> [Double] {
  var times: [Double] = []
  for _ in 0..<count {
    let begin = ContinuousClock.now
    try send(last + 1)
    last = try next(last)
    times.append((ContinuousClock.now - begin).nanoseconds / 2)
  }
  return times
}

/// Runs a listener's code, which has no caller to throw to.
func orDie(_ body: () throws -> Void) {
  do {
    try body()
  } catch {
    Output.problem("\(error)")
    Program.exit(1)
  }
}

/// The floor's side of the game.
final class Paddle: Sendable {
  private let heard: RawValue
  private let sent: RawValue
  private let events: FileDescriptor

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

  /// Reads on a thread of its own from now on, and hands each number over: to a queue, or to a task.
  func handOver(toTask: Bool, _ body: @escaping @Sendable (UInt64) -> Void) throws {
    let queue = DispatchQueue(label: "floor")
    let (numbers, source) = AsyncStream<UInt64>.makeStream()
    if toTask { Task { for await number in numbers { body(number) } } }
    try startThread(name: "floor") {
      var last: UInt64 = 0
      do throws(Errno) {
        while true {
          last = try self.next(after: last)
          let number = last
          if toTask { source.yield(number) } else { queue.async { body(number) } }
        }
      } catch {
        // The run is over, and the directory with it.
        if error != .noSuchFile { Output.problem("\(error)") }
      }
    }
  }
}
