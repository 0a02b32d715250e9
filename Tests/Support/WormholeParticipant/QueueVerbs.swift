import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The verbs of a participant about a queue.
///
/// ```
/// queue-send NAME SENDER FIRST COUNT LOG  sends numbers; notes each in the log once it is stored
/// queue-keep NAME SENDER NUMBER           sends a number with a receipt
/// queue-key NAME SENDER KEY NUMBER        sends a number with a key
/// queue-cancel NAME ID                    cancels; answers "true" or "false"
/// queue-consume NAME [SECONDS]            becomes the consumer within SECONDS
/// queue-join NAME                         becomes a worker
/// queue-next NAME [SECONDS]               takes an entry and keeps it; answers "SENDER NUMBER [again]"
/// queue-acknowledge NAME                  acknowledges the last taken entry
/// queue-fail NAME                         fails the last taken entry
/// queue-poison NAME LIMIT LOG             becomes the consumer with a limit of deliveries; notes each number,
///                                         releases 0 and acknowledges all others, until none waits
/// queue-retry NAME                        sends kept failed entries again
/// queue-follow NAME LAST LOG              as queue-work, until the entry LAST is acknowledged
/// queue-work NAME LOG                     becomes the consumer; notes each entry in the log as above
///                                         and then acknowledges it, until none waits
/// queue-share NAME LOG [SECONDS]          the same as a worker, until none has come for SECONDS
/// ```
enum QueueVerbs {
  private struct Kept {
    var consumers: [String: PlainConsumer] = [:]
    var entries: [String: PlainEntry] = [:]
  }

  private static let kept = Mutex(Kept())

  static func perform(_ verb: String, _ queue: PlainQueue, _ rest: [String]) throws -> String {
    switch verb {
    case "queue-send":
      let sender = try queue.sender(rest[0])
      guard let first = Int(rest[1]), let count = Int(rest[2]) else { return "error usage" }
      for number in first..<(first + count) {
        try sender.enqueue(PropertyListValue(number))
        try note("\(number)", in: rest[3])
      }
    case "queue-keep":
      try queue.sender(rest[0]).enqueue(PropertyListValue(Int(rest[1]) ?? 0), keepsReceipt: true)
    case "queue-key":
      try queue.sender(rest[0]).enqueue(PropertyListValue(Int(rest[2]) ?? 0), key: rest[1])
    case "queue-cancel":
      guard let id = QueueEntryID(rest[0]) else { return "error usage" }
      return "\(try queue.sender(id.sender).cancel(id))"
    case "queue-consume":
      let wait = Duration.seconds(rest.first.flatMap { Int($0) } ?? 0)
      let consumer = try queue.consume(until: .now + wait)
      kept.withLock { $0.consumers[queue.name] = consumer }
    case "queue-join":
      let consumer = try queue.work(until: .now + .seconds(5))
      kept.withLock { $0.consumers[queue.name] = consumer }
    case "queue-next":
      let limit = ContinuousClock.now + .seconds(rest.first.flatMap { Int($0) } ?? 0)
      let consumer = kept.withLock { $0.consumers[queue.name] }
      guard let entry = try consumer?.next(until: limit) else { return "nothing" }
      kept.withLock { $0.entries[queue.name] = entry }
      return describe(entry)
    case "queue-acknowledge": try kept.withLock { $0.entries[queue.name] }?.acknowledge()
    case "queue-fail":
      let entry = kept.withLock { $0.entries[queue.name] }
      try entry?.fail("on purpose", isKept: rest.first == "kept")
    case "queue-poison":
      let consumer = try queue.consume(
        until: .now + .seconds(5), attempts: Int(rest[0]))
      while let entry = try consumer.next(until: .now) {
        try note("\(entry.payload.intValue ?? -1)", in: rest[1])
        if entry.payload == 0 {
          try entry.retry(after: .zero, because: "again")
        } else {
          try entry.acknowledge()
        }
      }
      consumer.close()
    case "queue-retry":
      for failure in try queue.failures() { _ = try queue.retry(failure.id) }
    case "queue-follow":
      let consumer = try queue.consume(until: .now + .seconds(30))
      while let entry = try consumer.next(until: .now + .seconds(30)) {
        try note(describe(entry), in: rest[1])
        try entry.acknowledge()
        if entry.payload.intValue == Int(rest[0]) { return "done" }
      }
      return "error deadline nothing came"
    default:
      let consumer =
        verb == "queue-share"
        ? try queue.work(until: .now + .seconds(5))
        : try queue.consume(until: .now + .seconds(5))
      let patience = Duration.seconds(rest.count > 1 ? Int(rest[1]) ?? 0 : 0)
      while let entry = try consumer.next(until: .now + patience) {
        try note(describe(entry), in: rest[0])
        try entry.acknowledge()
      }
      consumer.close()
    }
    return "done"
  }

  private static func describe(_ entry: PlainEntry) -> String {
    let number = entry.payload.intValue.map(String.init) ?? "?"
    return "\(entry.sender) \(number)" + (entry.isRedelivery ? " again" : "")
  }

  private static func note(_ line: String, in log: String) throws {
    try FileDescriptor.open(log, [.writeOnly, .create, .append]).writeAll(Array((line + "\n").utf8))
  }
}
