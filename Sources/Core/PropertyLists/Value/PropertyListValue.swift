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
