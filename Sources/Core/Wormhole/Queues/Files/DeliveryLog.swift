import WormholeSystem

/// `taken/<consumer>/<batch>.deliveries`: how often entries of a batch were delivered, and until when
/// they are given back; lines are appended:
///
/// ```
/// <number>                 it is about to be delivered
/// <number> <pause> <due>   it was given back for so many milliseconds, to be delivered at <due>,
///                          in in milliseconds since 1970
/// ```
///
/// **Counted before.** The line is written before the entry is handed over, so a delivery that kills
/// its consumer is counted as well. A batch of one costs nothing the first time: the fact that it was
/// taken means that it was delivered once. So it has one line fewer than deliveries.
///
/// **With the batch.** The log has its batch's name and is moved with it, and means the same
/// everywhere.
package struct DeliveryLog: Sendable {
  /// The number of deliveries of an entry.
  private var counts: [Int: Int] = [:]
  /// Whether there is a file.
  package var isWritten: Bool
  private var pauses: [Int: (pause: Int64, due: Int64)] = [:]

  /// - Parameter isTaken: whether it is a batch of one that was taken before, by this consumer or
  ///   another.
  package init(_ bytes: [UInt8]? = nil, isTaken: Bool = false) {
    isWritten = bytes != nil
    if isTaken { counts[0] = 1 }
    guard let bytes else { return }
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let numbers = line.split(separator: " ").map { Int64($0) }
      guard let first = numbers.first, let index = first.map({ Int($0) }) else { continue }
      if numbers.count == 3, let pause = numbers[1], let due = numbers[2] {
        pauses[index] = (pause, due)
      } else if numbers.count == 1 {
        counts[index, default: 0] += 1
        pauses[index] = nil
      }
    }
  }

  package func deliveries(of index: Int) -> Int { counts[index] ?? 0 }

  /// Returns the time until which it is given back; nil if it is not. If the clock was set back,
  /// the delay is no longer than the pause.
  package func due(_ index: Int) -> ContinuousClock.Instant? {
    guard let (pause, due) = pauses[index] else { return nil }
    let now = realTime()
    let remaining = due - (now.seconds * 1_000 + now.nanoseconds / 1_000_000)
    return .now + .milliseconds(min(max(remaining, 0), max(pause, 0)))
  }

  package mutating func noteDelivery(of index: Int) {
    counts[index, default: 0] += 1
    pauses[index] = nil
  }

  package static func line(_ index: Int) -> String { "\(index)\n" }

  package static func line(_ index: Int, pause: Duration) -> String {
    let pause = Int64(min(max(pause / .milliseconds(1), 0), 1e15))
    let now = realTime()
    return "\(index) \(pause) \(now.seconds * 1_000 + now.nanoseconds / 1_000_000 + pause)\n"
  }
}
