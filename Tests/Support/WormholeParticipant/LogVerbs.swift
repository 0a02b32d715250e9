import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The verbs of a participant about a log.
///
/// ```
/// log-append NAME FIRST COUNT NOTES       appends numbers; notes each once it is appended
/// log-follow NAME SUBSCRIBER LAST NOTES   reads until the number LAST was acknowledged; notes each:
///                                         "MESSAGE PAYLOAD [again] [missed COUNT]"
/// log-drain NAME SUBSCRIBER NOTES         the same, until there is none
/// log-subscribe NAME SUBSCRIBER [SECONDS] begins to read
/// log-next NAME                           answers "MESSAGE PAYLOAD …" or "nothing"
/// log-remove NAME                         removes the log
/// log-acknowledge NAME                    counts the last one as read
/// ```
enum LogVerbs {
  private static let readers = Mutex<[String: LogReader<PropertyListValue>]>([:])

  static func perform(_ verb: String, _ log: PlainLog, _ rest: [String]) throws -> String {
    switch verb {
    case "log-append":
      guard let first = Int(rest[0]), let count = Int(rest[1]) else { return "error usage" }
      for number in first..<(first + count) {
        try log.append(PropertyListValue(number))
        try note("\(number)", in: rest[2])
      }
    case "log-follow":
      let reader = try log.subscribe(rest[0], until: .now + .seconds(30))
      while let message = try reader.next(until: .now + .seconds(60)) {
        try note(describe(message), in: rest[2])
        if message.payload.intValue == Int(rest[1]) {
          try reader.acknowledge()
          return "done"
        }
      }
      return "error deadline nothing came"
    case "log-drain":
      let reader = try log.subscribe(rest[0], until: .now + .seconds(30))
      while let message = try reader.next(until: .now) { try note(describe(message), in: rest[1]) }
      reader.close()
    case "log-subscribe":
      let wait = Duration.seconds(rest.dropFirst().first.flatMap { Int($0) } ?? 0)
      let reader = try log.subscribe(rest[0], until: .now + wait)
      readers.withLock { $0[log.name] = reader }
    case "log-next":
      let reader = readers.withLock { $0[log.name] }
      return try reader?.next(until: .now).map(describe) ?? "nothing"
    case "log-remove": try log.remove()
    case "log-acknowledge": try readers.withLock { $0[log.name] }?.acknowledge()
    default: return "error usage"
    }
    return "done"
  }

  private static func describe(_ message: LogMessage<PropertyListValue>) -> String {
    "\(message.number) \(message.payload.intValue ?? -1)" + (message.isRedelivery ? " again" : "")
      + (message.missed > 0 ? " missed \(message.missed)" : "")
  }

  private static func note(_ line: String, in notes: String) throws {
    try FileDescriptor.open(notes, [.writeOnly, .create, .append])
      .writeAll(Array((line + "\n").utf8))
  }
}
