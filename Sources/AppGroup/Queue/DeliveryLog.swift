import Synchronization
import SystemCalls

/// `taken/<consumer>/<batch>.deliveries`: how often entries of a batch were delivered, and until when they
/// are given back; a line each, appended:
///
/// ```
/// <number>                 it is about to be delivered
/// <number> <pause> <due>   it was given back for so many milliseconds, to be delivered at <due>,
///                          milliseconds since 1970
/// ```
///
/// **Counted before.** The line is written before the entry is handed over, so what kills its consumer each
/// time is counted, too. A batch of one costs nothing the first time: that it was taken says that it was
/// delivered once. So its lines are one fewer than its deliveries.
///
/// **With the batch.** The log lies beside its batch under the batch's name, and means the same wherever
/// both are moved together.
struct DeliveryLog: Sendable {
  /// How often an entry was delivered.
  private var counts: [Int: Int] = [:]
  /// Whether there is a file.
  var isWritten: Bool
  private var pauses: [Int: (pause: Int64, due: Int64)] = [:]

  /// - Parameter isTaken: whether it is a batch of one that another consumer took, or this one before.
  init(_ bytes: [UInt8]? = nil, isTaken: Bool = false) {
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

  func deliveries(of index: Int) -> Int { counts[index] ?? 0 }

  /// Until when it is given back; nil if it is not. A clock that was set back delays nothing beyond the
  /// pause.
  func due(_ index: Int) -> ContinuousClock.Instant? {
    guard let (pause, due) = pauses[index] else { return nil }
    let now = realTime()
    let remaining = due - (now.seconds * 1_000 + now.nanoseconds / 1_000_000)
    return .now + .milliseconds(min(max(remaining, 0), max(pause, 0)))
  }

  mutating func noteDelivery(of index: Int) {
    counts[index, default: 0] += 1
    pauses[index] = nil
  }

  static func line(_ index: Int) -> String { "\(index)\n" }

  static func line(_ index: Int, pause: Duration) -> String {
    let pause = Int64(min(max(pause / .milliseconds(1), 0), 1e15))
    let now = realTime()
    return "\(index) \(pause) \(now.seconds * 1_000 + now.nanoseconds / 1_000_000 + pause)\n"
  }
}

/// What a consumer was given back, until it is due.
final class ReleasedEntries: Sendable {
  struct Entry: Sendable {
    let batch: TakenBatch
    let index: Int
    let due: ContinuousClock.Instant
  }

  private let entries = Mutex<[Entry]>([])
  private let signal: @Sendable () -> Void

  /// - Parameter signal: called when something is given back, possibly while the consumer waits.
  init(signal: @escaping @Sendable () -> Void) { self.signal = signal }

  /// For the thread that looks for the next entry just now.
  func add(_ entry: Entry) { entries.withLock { $0.append(entry) } }

  func giveBack(_ entry: Entry) {
    add(entry)
    signal()
  }

  /// Takes the one that is due longest; nil when none is due.
  func takeDue() -> Entry? {
    let now = ContinuousClock.now
    return entries.withLock { entries in
      let due = entries.indices.filter { entries[$0].due <= now }
      guard let first = due.min(by: { entries[$0].due < entries[$1].due }) else { return nil }
      return entries.remove(at: first)
    }
  }

  /// When there is something to be taken; nil when nothing was given back.
  var due: ContinuousClock.Instant? { entries.withLock { $0.map(\.due).min() } }
}
