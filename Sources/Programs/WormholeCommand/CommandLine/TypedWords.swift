import FoundationEssentials
import WormholePropertyLists
import WormholeTerminals

/// The words of defaults(1) that name the type of the next word: `-int 5`,
/// `-dict-add left -int 1 right -int 2`. The collections among them begin the value.
struct TypedWords {
  private static let collections = ["-array", "-array-add", "-dict", "-dict-add"]
  /// The form of the word after each of the others.
  private static let expectations = [
    "-bool": "true, false, yes, no, 1 or 0", "-boolean": "true, false, yes, no, 1 or 0",
    "-data": "pairs of hexadecimal digits", "-date": "a date such as 2001-01-01T00:00:00Z",
    "-float": "a number", "-int": "a whole number of 64 bits",
    "-integer": "a whole number of 64 bits", "-string": "any text",
  ]

  static let markers = expectations.keys.sorted() + collections

  /// The collection that the words begin with; nil for one value.
  private let collection: String?
  private var values: [PropertyListValue] = []
  private var keys: [String] = []

  /// - Throws: `Misuse` if the words do not fit; the error of `untyped`, for untyped words.
  init(_ words: [String], untyped: (String) throws -> PropertyListValue) throws {
    collection = words.first.flatMap { Self.collections.contains($0) ? $0 : nil }
    var rest = words.dropFirst(collection == nil ? 0 : 1)
    while let word = rest.popFirst() {
      if collection == nil, !values.isEmpty {
        throw Misuse("unexpected argument '\(word)'")
      }
      let isKey = collection?.hasPrefix("-dict") ?? false
      if isKey { keys.append(word) }
      guard let type = isKey ? rest.popFirst() : word else {
        throw Misuse("missing value of the key '\(word)'")
      }
      if Self.collections.contains(type) {
        throw Misuse("'\(type)' must be the first word of the value")
      }
      guard let expectation = Self.expectations[type] else {
        values.append(try untyped(type))
        continue
      }
      guard let text = rest.popFirst() else {
        throw Misuse("missing value after '\(type)'")
      }
      guard let value = PropertyListValue(text, type: type) else {
        throw Misuse(
          "the value '\(text)' is invalid for '\(type)': expected \(expectation)")
      }
      values.append(value)
    }
  }

  static func areMeant(by words: [String]) -> Bool { words.first.map(markers.contains) ?? false }

  /// The problem of the arguments; nil if there is none, or if they name no type.
  static let problem: @Sendable (ParsedArguments) -> String? = { arguments in
    let words = arguments.texts("value")
    if let key = arguments.text("key"), markers.contains(key) {
      return "missing expected argument '<key>' before '\(key)'"
    }
    guard areMeant(by: words) else {
      guard words.count > 1 else { return nil }
      let domain = "a domain is --suite \((arguments.text("key") ?? "").quotedForShell)"
      return "unexpected argument '\(words[1])'; an array begins with -array, and \(domain)"
    }
    if arguments.isGiven("as") { return "--as and \(words[0]) exclude each other" }
    do {
      // JSON is read later: it is data, and its errors have another status.
      _ = try TypedWords(words) { .string($0) }
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Makes the change to a key's value, nil if there is none; throws if it has another type.
  func apply(to value: inout PropertyListValue?, ofKey key: String) throws {
    let members = Dictionary(zip(keys, values)) { $1 }
    switch (collection, value) {
    case (nil, _): value = values.first
    case ("-array", _), ("-array-add", nil): value = .array(values)
    case ("-array-add", .array(let old)?): value = .array(old + values)
    case ("-dict", _), ("-dict-add", nil): value = .dictionary(members)
    case ("-dict-add", .dictionary(let old)?): value = .dictionary(old.merging(members) { $1 })
    case (let collection, let old):
      let (verb, type) =
        collection == "-array-add" ? ("append to", "array") : ("add to", "dictionary")
      throw CommandError(
        cannot: "\(verb) \(key.quoted)",
        because:
          "its type is \(old?.typeName ?? "unknown"), and it must be \(type); write or remove it first",
        status: .badData)
    }
  }
}

extension PropertyListValue {
  /// Reads a text as a value of a type of defaults(1); nil for any other text.
  fileprivate init?(_ text: String, type: String) {
    let value: PropertyListValue? =
      switch type {
      case "-string": .string(text)
      case "-data": Self.data(hexadecimal: text)
      case "-int", "-integer":
        Int64(text).map { .integer($0) } ?? UInt64(text).map { .unsigned($0) }
      case "-float": Double(text).flatMap { $0.isFinite ? .real($0) : nil }
      case "-date": ISO8601.date(text).map { .date($0) }
      default:
        ["true", "yes", "1"].contains(text.lowercased())
          ? true : ["false", "no", "0"].contains(text.lowercased()) ? false : nil
      }
    guard let value else { return nil }
    self = value
  }

  private static func data(hexadecimal text: String) -> PropertyListValue? {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue.map(UInt8.init) }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    return .data(
      Data(stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }))
  }

  /// The name of its type, as defaults(1) has it.
  var typeName: String {
    switch self {
    case .string: "string"
    case .integer, .unsigned: "integer"
    case .real: "float"
    case .boolean: "boolean"
    case .date: "date"
    case .data: "data"
    case .array: "array"
    case .dictionary: "dictionary"
    }
  }
}
