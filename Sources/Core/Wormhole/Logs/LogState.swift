import Synchronization
package import WormholePropertyLists
import WormholeSystem

/// `log.plist`: the state that the processes of a log agree on.
///
/// It is a value like any other, and is published at the beginning of a log, when bounds are set,
/// once after each boot of the machine, and when messages are taken away. In between the log grows,
/// so `head` is only a lower bound of its end.
package struct LogState: Sendable, Equatable {
  /// Distinguishes this log from a removed log of the same name.
  package var id: String
  /// Nil if the bounds were never set.
  package var setBounds: LogBounds?
  /// The oldest message that is kept.
  package var first = 1
  /// A message that was appended, or was taken away.
  package var head = 0
  /// The size of the messages from `first` to `head`.
  package var bytes = 0
  /// When `first` was appended, in seconds since 1970.
  var oldest: Int64 = 0
  /// The boots of the machine, the last at the end, each with the first number given to a message
  /// after it. A power failure may undo the last names: their numbers are used again, and a
  /// subscriber that had read them must read the new ones.
  var boots: [Boot] = []

  struct Boot: Sendable, Equatable {
    let id: String
    let first: Int
  }

  package var bounds: LogBounds { setBounds ?? .standard }

  /// How many boots are remembered. A subscriber that was absent for longer may get messages again.
  static let rememberedBoots = 64
  /// Numbers up to this are valid, so that they can be added up.
  package static let largest = 1 << 60
  package static let numbers = 1...largest

  /// How far the log grows until `head` is published again.
  static let stride = 1_024
  /// No message has a larger number, so that a planted file does not make readers skip messages.
  package var furthest: Int { Self.furthest(from: head) }
  package static func furthest(from head: Int) -> Int { head + 2 * stride }
  /// Whether messages can follow a number.
  package static func mayBeHead(_ number: Int) -> Bool {
    (0...(largest - 2 * stride)).contains(number)
  }

  private static let digits = 16

  /// A message's number in names of files and keys: padded hexadecimal digits, so that names sort.
  package static func digits(of number: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: Self.digits - digits.utf8.count) + digits
  }

  /// Parses the digits of a number; nil for anything else.
  package static func number(ofDigits digits: some Collection<UInt8>) -> Int? {
    guard digits.count == Self.digits, digits.allSatisfy(Nonce.isDigit),
      let number = Int(String(decoding: digits, as: UTF8.self), radix: 16),
      numbers.contains(number)
    else { return nil }
    return number
  }

  init(id: String) { self.id = id }

  /// - Returns: nil for anything but a log's file.
  package init?(_ value: PropertyListValue) {
    guard let id = value["id"]?.stringValue, let first = Self.number(value["first"]),
      let head = value["head"]?.intValue, Self.mayBeHead(head),
      first <= head + 1
    else { return nil }
    self.id = id
    self.first = first
    self.head = head
    bytes = min(max(value["bytes"]?.intValue ?? 0, 0), Self.largest)
    oldest = max(0, value["oldest"]?.int64Value ?? 0)
    if let messages = value["maximumMessages"]?.intValue,
      let most = value["maximumBytes"]?.intValue
    {
      let age = value["maximumAge"]?.doubleValue.flatMap { $0 > 0 && $0 < 1e10 ? $0 : nil }
      setBounds = .init(messages: messages, bytes: most, age: age.map { .seconds($0) })
    }
    boots = (value["boots"]?.arrayValue ?? []).compactMap { boot in
      guard let id = boot["id"]?.stringValue, let first = Self.number(boot["first"]) else {
        return nil
      }
      return Boot(id: id, first: first)
    }
  }

  private static func number(_ value: PropertyListValue?) -> Int? {
    value?.intValue.flatMap { numbers.contains($0) ? $0 : nil }
  }

  var content: PropertyListValue {
    var value: PropertyListValue = [
      "id": .string(id), "first": PropertyListValue(first), "head": PropertyListValue(head),
      "bytes": PropertyListValue(bytes), "oldest": .integer(oldest),
      "boots": .array(
        boots.map { ["id": .string($0.id), "first": PropertyListValue($0.first)] }),
    ]
    if let setBounds {
      value["maximumMessages"] = PropertyListValue(setBounds.messages)
      value["maximumBytes"] = PropertyListValue(setBounds.bytes)
      if let age = setBounds.age { value["maximumAge"] = .real(age / .seconds(1)) }
    }
    return value
  }

  /// Whether it knows a boot. Several may be current at the same time, because containers may have
  /// boot ids of their own.
  package func isCurrent(in boot: String) -> Bool {
    boots.last?.id == boot || boots.contains { $0.id == boot }
  }

  /// Returns the next message for a subscriber that was last active in a boot.
  func next(_ next: Int, asOf boot: String) -> Int {
    guard let index = boots.lastIndex(where: { $0.id == boot }) else {
      return boots.reduce(next) { min($0, $1.first) }
    }
    return boots[(index + 1)...].reduce(next) { min($0, $1.first) }
  }
}

/// What this process knows about a log: with it, an append checks once whether `log.plist` has
/// changed, and does not search for the end of the log.
final class LogMemory: Sendable {
  private struct Known {
    var version: Version?
    var state: LogState?
    /// The last message that this process has appended or found.
    var head = 0
    /// The bytes that this process has appended since it learned the state.
    var bytes = 0
  }

  private let known = Mutex(Known())

  /// Returns the log's file; nil if there is none.
  ///
  /// - Throws: `WormholeError`: `damaged`, and as reading a value.
  func state(of value: PlainValue) throws -> LogState? {
    if let version = try value.version(),
      let state = known.withLock({ $0.version == version ? $0.state : nil })
    {
      return state
    }
    let snapshot = try value.snapshot()
    let state = try LogState.read(snapshot, at: value.path)
    known.withLock { known in
      // The container may have been replaced by an older state, where this log has fewer messages.
      known.head = 0
      known.version = snapshot.version
      known.state = state
      known.bytes = 0
    }
    return state
  }

  /// Returns a message that was appended, or is known to have been taken away.
  func head(_ state: LogState?) -> Int {
    known.withLock { max($0.state == state ? $0.head : 0, state?.head ?? 0) }
  }

  /// - Parameter state: The state in which the message was appended or found.
  /// - Returns: the size of what this process has appended since it learned the state.
  @discardableResult
  func note(_ number: Int, bytes: Int = 0, in state: LogState?) -> Int {
    known.withLock { known in
      guard known.state == state else { return known.bytes }
      known.head = max(known.head, number)
      known.bytes += bytes
      return known.bytes
    }
  }
}

extension LogState {
  /// - Returns: nil if there is no such file.
  package static func read(_ snapshot: PlainSnapshot, at path: String) throws -> LogState? {
    guard let content = try snapshot.propertyList() else { return nil }
    guard let state = LogState(content) else {
      throw WormholeError(
        .damaged, "read what is known about a log", path: path,
        reason: "it is missing the keys of a log",
        remedy: "put it aside: the log's messages stay, and its bounds have to be set again")
    }
    return state
  }
}
