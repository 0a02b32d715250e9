import FoundationEssentials
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

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
