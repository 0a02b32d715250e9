import Synchronization
import Wormhole
import WormholeSystem

/// From a message to its listener: two threads play ping-pong through two values, as two processes would,
/// and half a round trip counts. The floor writes and reads the same files with bare calls, and waits for
/// inotify.
package enum ListenRow {
  /// The message that ends the other thread.
  private static let last = UInt64.max >> 1

  package static func measure(_ bench: Bench) throws -> Row {
    let container = try bench.container("listen")
    let directory = bench.path + "/listen"
    let (ping, pong) = (container.value("ping"), container.value("pong"))
    // Each side of the floor makes both values.
    let paddle = try Paddle(directory, hears: "raw-pong", sends: "raw-ping")
    let other = try Paddle(directory, hears: "raw-ping", sends: "raw-pong")
    let failure = FirstFailure()
    try startThread(name: "floor") {
      do {
        var number: UInt64 = 0
        while number != last {
          number = try other.next(after: number)
          try other.send(number)
        }
      } catch { failure.note(error) }
    }
    let pings = try ping.snapshots()
    try startThread(name: "listener") {
      do {
        var heard = pings.makeAsyncIterator()
        while let snapshot = heard.next(until: .now + patience) {
          let number = SharedCount.number(try snapshot.propertyList())
          if number > 0 { try pong.replace(with: SharedCount.content(number)) }
          guard number != last else { return }
        }
      } catch { failure.note(error) }
    }
    var heard = try pong.snapshots().makeAsyncIterator()
    var (ours, bare): (UInt64, UInt64) = (0, 0)
    func next(after last: UInt64) throws -> UInt64 {
      while let pong = heard.next(until: .now + patience) {
        let number = SharedCount.number(try pong.propertyList())
        if number != last { return number }
      }
      try failure.check()
      throw Failure(description: "the listener does not answer")
    }
    let count = bench.scaled(100)
    let send: (UInt64) throws -> Void = { try ping.replace(with: SharedCount.content($0)) }
    let row = try bench.compare(
      "send to listener / inotify", rounds: bench.rounds,
      ours: { try play(count, after: &ours, send: send, next: next).median },
      floor: { try play(count, after: &bare, send: paddle.send, next: paddle.next).median })
    try send(last)
    try paddle.send(last)
    return row
  }

  private static let patience: Duration = .seconds(30)
}
