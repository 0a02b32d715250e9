public import FoundationEssentials

/// One value of a property list: what every file in a container holds.
///
/// Integers above `Int64.max` are `.unsigned`; equality and hashing treat `.integer(5)` and
/// `.unsigned(5)` as the same value. Reals are compared by bit pattern, so that NaN equals itself
/// and a value read back equals the value that was written.
public enum PropertyListValue: Sendable {
  case string(String)
  case integer(Int64)
  case unsigned(UInt64)
  case real(Double)
  case boolean(Bool)
  case date(Date)
  case data(Data)
  case array([PropertyListValue])
  case dictionary([String: PropertyListValue])
}
