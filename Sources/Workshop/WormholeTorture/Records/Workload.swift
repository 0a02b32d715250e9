import FoundationEssentials
import WormholePropertyLists
import WormholeWorkshop

/// The names that all workers use; there are only a few, so that workers meet.
enum Workload {
  static let counters = ["counter/0", "counter/1", "counter/2"]
  /// One of them is too long for a file name.
  static let registers = [
    "register/0", "register/é \"1\"", "register/" + String(repeating: "2", count: 260),
  ]
  static let large = ["large"]
  /// Two counters that are always changed together, so that they are equal at each moment.
  static let twins = ["twin/0", "twin/1"]
  static let notifications = ["notification/0", "notification/1"]
  /// The 64-bit state of the first notification.
  static let state = "state"

  /// Written only by the worker in one place, in ascending order.
  static func single(_ slot: Int) -> String { "single/\(slot)" }

  static func isLarge(_ key: String) -> Bool { key == large[0] }
  static func isCounter(_ key: String) -> Bool { key.hasPrefix("counter/") }

  /// Returns whether the numbers of a key only ever grow.
  static func isAscending(_ key: String) -> Bool { isCounter(key) || key.hasPrefix("single/") }

  static func values(processes: Int) -> [String] {
    counters + registers + large + (0..<processes).map(single)
  }

  /// The initial state of a notification (notify(3)).
  static let initial: [String: HistoryValue] = [state: 0]

  /// Returns the first of the numbers that only one process writes: `life` counts the processes of
  /// a run.
  static func firstNumber(life: Int) -> UInt64 { UInt64(life) << 32 }

  /// Returns the process number in a history, because the clients and observers of a worker act on
  /// their own.
  static func process(life: Int, _ kind: Kind) -> Int { life * 100 + kind.number }
  static func process(life: Int, observer: Int) -> Int { life * 100 + 10 + observer }
}

/// A kind of work, for which each worker has a client: all kinds, or those that `--only` names.
enum Kind: String, CaseIterable, Codable {
  /// Values and notifications, by calls that block.
  case values
  /// One more client for values: the same calls with `await`.
  case task
  /// Guaranteed messages.
  case queues
  /// Requests between sessions.
  case requests
  /// Files between sessions.
  case files
  /// A log with two subscribers.
  case logs
  /// Presence.
  case presence
  /// All changes of the keys on etcd, as a watch reports them.
  case watches

  /// The number of its client.
  var number: Int { Self.allCases.firstIndex(of: self) ?? 0 }

  static let ofDirectories = Set(Kind.allCases).subtracting([.task, .watches])
  static let onEtcd = Set(Kind.allCases).subtracting([.task])

  /// Returns the kinds in a list such as "queues,files", or nil for any other text.
  static func list(_ text: String) -> Set<Kind>? {
    let kinds = text.split(separator: ",").map { Kind(rawValue: String($0)) }
    guard !kinds.isEmpty, !kinds.contains(nil) else { return nil }
    return Set(kinds.compactMap { $0 })
  }

  static func text(_ kinds: Set<Kind>) -> String {
    Kind.allCases.filter(kinds.contains).map(\.rawValue).joined(separator: ",")
  }
}

/// A value that shows whether it was torn, mixed with another or stored under another name.
///
/// It carries its key, its number and a checksum of both. A large value also has 200 KB of content
/// in which every eight bytes are the number.
enum Content {
  struct Torn: Error, CustomStringConvertible {
    let description: String
  }

  static let fillerBytes = 200_000

  static func make(_ number: UInt64, for key: String) -> PropertyListValue {
    var content: PropertyListValue = [
      "key": .string(key), "number": PropertyListValue(number),
      "sum": PropertyListValue(sum(number, key)),
    ]
    if Workload.isLarge(key) {
      let words = [UInt64](repeating: number, count: fillerBytes / 8)
      content["filler"] = .data(words.withUnsafeBytes { Data($0) })
    }
    return content
  }

  /// Returns the number of a whole value, or nil if there is no value.
  static func number(_ value: PropertyListValue?, in key: String) throws(Torn) -> UInt64? {
    guard let value else { return nil }
    guard let number = value["number"]?.uint64Value, let sum = value["sum"]?.uint64Value,
      let owner = value["key"]?.stringValue
    else { throw Torn(description: "\(key) holds another content: \(value)") }
    guard owner == key else { throw Torn(description: "\(key) holds a value of \(owner)") }
    guard sum == Self.sum(number, key) else {
      throw Torn(description: "\(key) holds \(number) with the checksum of another value")
    }
    guard Workload.isLarge(key) else { return number }
    guard let filler = value["filler"]?.dataValue, filler.count == fillerBytes else {
      throw Torn(description: "\(key) holds \(number) with a part of its content")
    }
    let isWhole = filler.withUnsafeBytes { raw in
      raw.bindMemory(to: UInt64.self).allSatisfy { $0 == number }
    }
    guard isWhole else {
      throw Torn(description: "\(key) holds \(number) mixed with another value's content")
    }
    return number
  }

  private static func sum(_ number: UInt64, _ key: String) -> UInt64 {
    key.utf8.reduce(mix(number)) { mix($0 ^ UInt64($1)) }
  }
}
