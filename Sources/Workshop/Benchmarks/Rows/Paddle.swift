import RivalCalls
import SystemCalls

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
