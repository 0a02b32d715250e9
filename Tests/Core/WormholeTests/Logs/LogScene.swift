import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

/// A log in its own directory.
struct LogScene {
  let directory: TemporaryDirectory
  let log: PlainLog

  init() throws {
    directory = try TemporaryDirectory()
    log = try directory.container().log("l")
  }

  var container: SharedContainer { log.container }
  var place: String { directory.path + "/logs/l" }

  /// Returns the path of a message's file.
  func file(_ number: Int) -> String { place + "/" + LogDirectory.path(number) }

  func participant() throws -> Participant { try Participant(directory.path) }

  @discardableResult
  func append(_ numbers: some Sequence<Int>) throws -> [Int] {
    try numbers.map { try log.append(PropertyListValue($0)) }
  }

  /// The payloads of all messages that a reader has now.
  func drain(_ reader: LogReader<PropertyListValue>) throws -> [Int] {
    var all: [Int] = []
    while let message = try reader.next(until: .now) { all.append(message.payload.intValue ?? -1) }
    return all
  }

  func read(from start: LogStart = .beginning) throws -> [Int] { try drain(log.read(from: start)) }

  /// Reads what waits for a subscriber.
  func read(as subscriber: String) throws -> [Int] {
    let reader = try log.subscribe(subscriber)
    defer { reader.close() }
    return try drain(reader)
  }

  func numbers() throws -> [Int] { try (log.store.open()?.numbers() ?? []).sorted() }

  func noted(_ path: String) throws -> [[Substring]] {
    try ItemText.read(path)?.split(separator: "\n").map { $0.split(separator: " ") } ?? []
  }

  func write(_ text: String, to path: String) throws(Errno) {
    try FileDescriptor.open(path, [.writeOnly, .create, .truncate]).writeAll(Array(text.utf8))
  }
}
