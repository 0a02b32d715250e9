import Dispatch
import Synchronization
import Wormhole
import WormholeSystem
import WormholeWorkshop

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

/// Runs a listener's code, which has no caller for its errors.
func orDie(_ body: () throws -> Void) {
  do {
    try body()
  } catch {
    Output.problem("\(error)")
    Program.exit(1)
  }
}

extension Paddle {
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
