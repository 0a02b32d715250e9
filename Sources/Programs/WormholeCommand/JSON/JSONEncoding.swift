import FoundationEssentials
import WormholePropertyLists

extension PropertyListValue {
  /// Creates the property list that stands for a value in the JSON of this program.
  ///
  /// The value decides its keys, by its `Encodable` conformance. A date is a string (RFC 3339), and a
  /// duration the number of its seconds, or of the milliseconds that its key names. A key without a
  /// value is left out. Content of users is a property list within the value, and stays as it is.
  init(json value: some Encodable, _ dates: JSONDates = .exact) throws {
    self = try JSONEncoding(dates).form(of: value) ?? .dictionary([:])
  }
}

/// How a date is written: scripts compare the times of events exactly, and read other times to the
/// second.
enum JSONDates { case exact, wholeSeconds }

/// Keys with values in JSON; those without a value are left out. Scripts read them, so keys are only
/// ever added.
struct JSONObject: Encodable, ExpressibleByDictionaryLiteral {
  private var members: [String: any Encodable]

  init(dictionaryLiteral elements: (String, (any Encodable)?)...) {
    members = Dictionary(elements.compactMap { key, value in value.map { (key, $0) } }) { $1 }
  }

  subscript(key: String) -> (any Encodable)? {
    get { members[key] }
    set { members[key] = newValue }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Name.self)
    for (key, value) in members { try container.encode(value, forKey: Name(stringValue: key)) }
  }

  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
  }
}

/// Builds the property list for one value; see `PropertyListValue.init(json:)`. It is each of the value's
/// containers itself, except the one with keys.
private final class JSONEncoding: Encoder, UnkeyedEncodingContainer, SingleValueEncodingContainer {
  private let dates: JSONDates
  /// Nil as long as nothing was encoded.
  fileprivate var list: PropertyListValue?
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]
  private(set) var count = 0

  init(_ dates: JSONDates) { self.dates = dates }

  /// - Returns: Nil for nil.
  func form(of value: some Encodable) throws -> PropertyListValue? {
    if let date = value as? Date {
      let date = dates == .exact ? date : date.wholeSeconds
      return ISO8601.text(date).map { .string($0) } ?? .date(date)
    }
    if let duration = value as? Duration { return .real(duration.seconds) }
    if let scalar = PropertyListValue.leaf(value) { return scalar }
    let part = JSONEncoding(dates)
    try value.encode(to: part)
    return part.list
  }

  // A value may encode several parts of itself into one dictionary.
  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    list = list ?? .dictionary([:])
    return KeyedEncodingContainer(JSONMembers<Key>(encoding: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    list = .array([])
    return self
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  func encodeNil() {}

  /// Encodes an element of an array, or the value itself.
  func encode(_ value: some Encodable) throws {
    let part = try form(of: value)
    if list == nil {
      list = part
    } else if let part {
      list?[count] = part
      count += 1
    }
  }

  // No type that this program prints nests containers.

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) -> KeyedEncodingContainer<Nested> { preconditionFailure("nest types instead") }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    preconditionFailure("nest types instead")
  }

  func superEncoder() -> any Encoder { preconditionFailure("nest types instead") }
}

private struct JSONMembers<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoding: JSONEncoding
  var codingPath: [any CodingKey] { [] }

  func encodeNil(forKey key: Key) {}

  func encode(_ value: some Encodable, forKey key: Key) throws {
    let key = key.stringValue
    let short = key.hasSuffix("Milliseconds") ? value as? Duration : nil
    encoding.list?[key] = try short.map { .real($0 / .milliseconds(1)) } ?? encoding.form(of: value)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> { encoding.nestedContainer(keyedBy: type) }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    encoding.nestedUnkeyedContainer()
  }

  func superEncoder() -> any Encoder { encoding.superEncoder() }

  func superEncoder(forKey key: Key) -> any Encoder { encoding.superEncoder() }
}

extension Duration {
  var seconds: Double { self / .seconds(1) }
}

extension Date {
  /// The last whole second before it.
  var wholeSeconds: Date {
    Date(timeIntervalSinceReferenceDate: timeIntervalSinceReferenceDate.rounded(.down))
  }
}
