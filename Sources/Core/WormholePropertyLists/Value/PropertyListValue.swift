public import FoundationEssentials

/// One value of a property list, and the content of every file in a container.
///
/// Integers above `Int64.max` are `.unsigned`; equality and hashing treat `.integer(5)` and
/// `.unsigned(5)` as the same value. Reals are compared by bit pattern, so NaN equals itself, and a
/// value that is read back equals the value that was written.
///
/// ```swift
/// let ticket: PropertyListValue = ["film": "Metropolis", "seats": [7, 8], "sold": true]
/// print(ticket["film"]?.stringValue ?? "", ticket["seats"]?[0]?.intValue ?? 0)
/// let bytes = try ticket.binaryData()
/// print(try PropertyListValue(data: bytes) == ticket)
/// ```
public enum PropertyListValue: Sendable {
  /// Text: `<string>`.
  case string(String)
  /// A whole number up to `Int64.max`: `<integer>`.
  case integer(Int64)
  /// A whole number above `Int64.max`: `<integer>`, too.
  case unsigned(UInt64)
  /// A floating-point number: `<real>`.
  case real(Double)
  /// True or false: `<true/>`, `<false/>`.
  case boolean(Bool)
  /// A point in time: `<date>`.
  case date(Date)
  /// Bytes: `<data>`.
  case data(Data)
  /// Values in their order: `<array>`.
  case array([PropertyListValue])
  /// Values by their keys, which are strings: `<dict>`.
  case dictionary([String: PropertyListValue])
}
