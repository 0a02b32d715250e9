import Synchronization
import Wormhole
package import WormholeSystem

/// A game of ping-pong whose player blocks its thread.
///
/// - Parameters:
///   - send: Sends a ping with a number.
///   - next: Waits for a pong with another number than the last one.
/// - Returns: The nanoseconds of each half round trip.
package func play(
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

/// The floor's side of the game.
package final class Paddle: Sendable {
  private let heard: RawValue
  private let sent: RawValue
  private let events: FileDescriptor
  // The other side may answer before this one has removed what it replaced, and then another thread
  // sends the next ping.
  private let sending = Mutex(())

  package init(_ directory: String, hears: String, sends: String) throws {
    heard = try RawValue(directory, hears)
    sent = try RawValue(directory, sends)
    try sent.publish(RawValue.content(0))
    events = try .blockingEventQueue()
    _ = try events.addWatch(directory + "/values/" + hears, [.movedTo, .onlyDirectory])
  }

  package func send(_ number: UInt64) throws(Errno) {
    let result = sending.withLock { _ in
      Result { () throws(Errno) in try sent.publish(RawValue.content(number)) }
    }
    try result.get()
  }

  /// Waits until the value holds another number than the last one.
  package func next(after last: UInt64) throws(Errno) -> UInt64 {
    while true {
      _ = try events.takeEvents { _, _ in }
      let number = try heard.read()
      if number != last { return number }
    }
  }
}
