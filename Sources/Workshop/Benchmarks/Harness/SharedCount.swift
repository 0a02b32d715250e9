import AppGroup
import PropertyLists

/// The value of the rows about our own code: 200 bytes on disk with a number among them.
enum SharedCount {
  private static let padding = PropertyListValue.string(String(repeating: "x", count: 138))

  static func content(_ number: UInt64) -> PropertyListValue {
    ["count": .integer(Int64(number)), "padding": padding]
  }

  static func number(_ value: PropertyListValue?) -> UInt64 {
    value?["count"]?.uint64Value ?? 0
  }

  static func increment(_ value: Value) throws {
    try value.update { $0 = content(number($0) + 1) }
  }
}
