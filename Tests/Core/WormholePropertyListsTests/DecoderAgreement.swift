import Foundation
import WormholePropertyLists

/// A comparison of Foundation's decoder with our reader, value by value.
///
/// The expected value determines the requested type, because the decoder itself would also return a
/// real as an integer.
struct DecoderAgreement: DecodableWithConfiguration {
  struct Disagreement: Error {
    let expected: PropertyListValue
    let decoded: String
  }

  typealias DecodingConfiguration = PropertyListValue

  init(from decoder: any Decoder, configuration expected: PropertyListValue) throws {
    switch expected {
    case .array(let elements):
      var container = try decoder.unkeyedContainer()
      for element in elements { _ = try container.decode(Self.self, configuration: element) }
      try Self.check(container.isAtEnd, expected, "a longer array")
    case .dictionary(let entries):
      let container = try decoder.container(keyedBy: AnyKey.self)
      try Self.check(container.allKeys.count == entries.count, expected, "other keys")
      for (key, entry) in entries {
        _ = try container.decode(Self.self, forKey: AnyKey(stringValue: key), configuration: entry)
      }
    default:
      try Self.checkScalar(try decoder.singleValueContainer(), expected)
    }
  }

  private static func checkScalar(
    _ container: any SingleValueDecodingContainer, _ expected: PropertyListValue
  ) throws {
    switch expected {
    case .string("$null"):
      // Foundation's own spelling of nil.
      try check(container.decodeNil(), expected, "something")
    case .string(let string):
      let decoded = try container.decode(String.self)
      try check(decoded.utf8.elementsEqual(string.utf8), expected, decoded)
    case .integer(let integer):
      let decoded = try container.decode(Int64.self)
      try check(decoded == integer, expected, "\(decoded)")
    case .unsigned(let integer):
      let decoded = try container.decode(UInt64.self)
      try check(decoded == integer, expected, "\(decoded)")
    case .real(let real):
      let decoded = try container.decode(Double.self)
      let isSame = decoded.bitPattern == real.bitPattern || (decoded.isNaN && real.isNaN)
      try check(isSame, expected, "\(decoded)")
    case .boolean(let boolean):
      try check(try container.decode(Bool.self) == boolean, expected, "the opposite")
    case .date(let date):
      let decoded = try container.decode(Date.self)
      // On Linux the decoder of XML counts days before October 1582 in the Julian calendar.
      let isJulian = decoded.timeIntervalSinceReferenceDate < -13_197_600_000
      try check(decoded == date || isJulian, expected, "\(decoded)")
    case .data(let data):
      try check(try container.decode(Data.self) == data, expected, "other bytes")
    case .array, .dictionary: break
    }
  }

  private static func check(
    _ condition: Bool, _ expected: PropertyListValue, _ decoded: String
  ) throws {
    guard condition else { throw Disagreement(expected: expected, decoded: decoded) }
  }

  /// Throws unless `PropertyListDecoder` reads the same value as our reader.
  static func check(_ bytes: [UInt8], is value: PropertyListValue) throws {
    _ = try PropertyListDecoder().decode(Self.self, from: Data(bytes), configuration: value)
  }
}

struct AnyKey: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}

/// A value decoded by requesting every type in turn, as programs without a schema do.
struct AnyPropertyList: Decodable {
  init(from decoder: any Decoder) throws {
    if var array = Self.attempt({ try decoder.unkeyedContainer() }) {
      while !array.isAtEnd { _ = try array.decode(AnyPropertyList.self) }
    } else if let dictionary = Self.attempt({ try decoder.container(keyedBy: AnyKey.self) }) {
      for key in dictionary.allKeys { _ = try dictionary.decode(AnyPropertyList.self, forKey: key) }
    } else {
      let value = try decoder.singleValueContainer()
      let isScalar =
        value.decodeNil() || Self.attempt { try value.decode(Bool.self) } != nil
        || Self.attempt { try value.decode(Int.self) } != nil
        || Self.attempt { try value.decode(UInt64.self) } != nil
        || Self.attempt { try value.decode(Float.self) } != nil
        || Self.attempt { try value.decode(Double.self) } != nil
        || Self.attempt { try value.decode(Date.self) } != nil
        || Self.attempt { try value.decode(Data.self) } != nil
      if !isScalar { _ = try value.decode(String.self) }
    }
  }

  private static func attempt<T>(_ decode: () throws -> T) -> T? {
    do {
      return try decode()
    } catch {
      // It has another type; the caller requests the next one.
      return nil
    }
  }
}
