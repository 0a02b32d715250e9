import FoundationEssentials
import WormholePropertyLists

/// JSON from an argument, standard input or a program: as a value, or as an error that names the place.
enum JSONInput {
  /// JSON is at most a few times larger than the largest property list that is read.
  static let maximumBytes = 256 << 20

  /// - Parameter source: the object of an error's sentence: "the message".
  static func read(
    _ bytes: [UInt8], source: String, nulls: JSONReader.Nulls = .refuse
  ) throws -> PropertyListValue {
    try naming(source) { try JSONReader.read(bytes, nulls: nulls) }
  }

  /// Reads JSON; a lone `null` means that there is no value.
  static func readOptional(
    _ bytes: [UInt8], source: String, nulls: JSONReader.Nulls = .refuse
  ) throws -> PropertyListValue? {
    try naming(source) { try JSONReader.readOptional(bytes, nulls: nulls) }
  }

  private static func naming<Value>(_ source: String, _ read: () throws -> Value) throws -> Value {
    do {
      return try read()
    } catch {
      throw CommandError(cannot: "read \(source)", because: error, status: .badData)
    }
  }
}

/// How a command prints values.
enum OutputFormat: String, CaseIterable, Sendable {
  case json
  case plist
  case binary

  /// The printed form: JSON and XML end with a line break, a binary property list does not.
  func bytes(
    _ value: PropertyListValue, of object: String, isPretty: Bool = false
  ) throws -> [UInt8] {
    do {
      switch self {
      case .json:
        return try JSONWriter.bytes(value, isPretty: isPretty) + [UInt8(ascii: "\n")]
      case .plist: return try Array(value.xmlData())
      case .binary: return try value.binaryBytes()
      }
    } catch {
      throw CommandError(cannot: "print \(object)", because: error, status: .badData)
    }
  }
}

/// A value that a key of a JSON object may have; nil if it is unknown.
protocol JSONMember { var member: PropertyListValue? { get } }

/// A type written as a JSON object. Keys are only ever added; unknown values are left out.
protocol JSONObject: JSONMember { var propertyList: PropertyListValue { get } }

extension JSONObject { var member: PropertyListValue? { propertyList } }

extension PropertyListValue: JSONMember { var member: PropertyListValue? { self } }
extension String: JSONMember { var member: PropertyListValue? { .string(self) } }
extension Bool: JSONMember { var member: PropertyListValue? { .boolean(self) } }
extension Int: JSONMember { var member: PropertyListValue? { .integer(Int64(self)) } }
extension Int32: JSONMember { var member: PropertyListValue? { .integer(Int64(self)) } }
extension Int64: JSONMember { var member: PropertyListValue? { .integer(self) } }
extension Double: JSONMember { var member: PropertyListValue? { .real(self) } }
extension Date: JSONMember { var member: PropertyListValue? { .date(self) } }
extension Array: JSONMember where Element: JSONMember {
  var member: PropertyListValue? { .array(compactMap(\.member)) }
}
extension Optional: JSONMember where Wrapped: JSONMember {
  var member: PropertyListValue? { flatMap(\.member) }
}

extension PropertyListValue {
  /// A dictionary of the keys with a known value.
  static func object(_ members: [String: any JSONMember]) -> PropertyListValue {
    .dictionary(members.compactMapValues(\.member))
  }
}
