import FoundationEssentials
import WormholePropertyLists

/// The words of defaults(1) that say of which type the next word is: `-int 5`,
/// `-dict-add left -int 1 right -int 2`.
enum TypedWords {
  /// What a command line does to the value of a key.
  enum Change: Sendable {
    case set(PropertyListValue)
    case append([PropertyListValue])
    case merge([String: PropertyListValue])

    /// Makes the change, to nil where there is no value.
    ///
    /// - Throws: `CommandError` where there is a value of another type.
    func apply(to value: inout PropertyListValue?, _ key: String) throws {
      switch (self, value) {
      case (.set(let new), _): value = new
      case (.append(let items), nil): value = .array(items)
      case (.append(let items), .array(let old)?): value = .array(old + items)
      case (.merge(let members), nil): value = .dictionary(members)
      case (.merge(let members), .dictionary(let old)?):
        value = .dictionary(old.merging(members) { $1 })
      case (.append, let old?): throw mismatch("append to", key, old, wanted: "array")
      case (.merge, let old?): throw mismatch("add to", key, old, wanted: "dictionary")
      }
    }

    private func mismatch(
      _ verb: String, _ key: String, _ old: PropertyListValue, wanted: String
    ) -> CommandError {
      CommandError(
        verb: verb, object: key.quoted,
        reason: "its type is \(old.typeName), and it must be \(wanted); write or delete it first",
        status: .badData)
    }
  }

  /// Why the words are no change.
  struct Problem: Error, CustomStringConvertible {
    let reason: String

    init(_ reason: String) { self.reason = reason }

    var description: String { reason }
  }

  private static let scalars: [String: @Sendable (String) throws(Problem) -> PropertyListValue] = [
    "-string": { text throws(Problem) in .string(text) },
    "-data": data, "-int": integer, "-integer": integer, "-float": real, "-bool": boolean,
    "-boolean": boolean, "-date": date,
  ]
  private static let collections = ["-array", "-array-add", "-dict", "-dict-add"]

  static let markers: [String] = scalars.keys.sorted() + collections

  /// Returns whether the words begin with the name of a type.
  static func areMeant(by words: [String]) -> Bool { words.first.map(markers.contains) ?? false }

  /// The problem of the arguments; nil if there is none, or if they name no type.
  static let problem: @Sendable (ParsedArguments) -> String? = { arguments in
    let words = arguments.texts("value")
    if let key = arguments.text("key"), markers.contains(key) {
      return "missing expected argument '<key>' before '\(key)'"
    }
    guard areMeant(by: words) else {
      return words.count > 1
        ? "unexpected argument '\(words[1])'; an array begins with -array" : nil
    }
    if let form = ["string", "data", "json"].first(where: arguments.has) {
      return "--\(form) and \(words[0]) exclude each other"
    }
    do {
      // JSON is read later: it is data, and its errors have another status.
      _ = try change(words) { .string($0) }
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Returns the change that the words stand for.
  ///
  /// - Parameter untyped: Returns the value of a word without a type.
  static func change(
    _ words: [String], untyped: (String) throws -> PropertyListValue
  ) throws -> Change {
    guard let first = words.first, collections.contains(first) else {
      var rest = words[...]
      let value = try takeValue(&rest, untyped)
      if let extra = rest.first { throw Problem("unexpected argument '\(extra)'") }
      return .set(value)
    }
    var rest = words.dropFirst()
    if first.hasPrefix("-array") {
      var items: [PropertyListValue] = []
      while !rest.isEmpty { items.append(try takeValue(&rest, untyped)) }
      return first == "-array" ? .set(.array(items)) : .append(items)
    }
    var members: [String: PropertyListValue] = [:]
    while let key = rest.popFirst() {
      guard !rest.isEmpty else { throw Problem("missing value of the key '\(key)'") }
      members[key] = try takeValue(&rest, untyped)
    }
    return first == "-dict" ? .set(.dictionary(members)) : .merge(members)
  }

  private static func takeValue(
    _ rest: inout ArraySlice<String>, _ untyped: (String) throws -> PropertyListValue
  ) throws -> PropertyListValue {
    guard let word = rest.popFirst() else { throw Problem("missing value") }
    if collections.contains(word) { throw Problem("'\(word)' must be the first word of the value") }
    guard let read = scalars[word] else { return try untyped(word) }
    guard let text = rest.popFirst() else { throw Problem("missing value after '\(word)'") }
    return try read(text)
  }

  // MARK: Types

  @Sendable private static func data(_ text: String) throws(Problem) -> PropertyListValue {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue.map(UInt8.init) }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else {
      throw Problem(
        "the value '\(text)' is invalid for '-data': expected pairs of hexadecimal digits")
    }
    return .data(
      Data(stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }))
  }

  @Sendable private static func integer(_ text: String) throws(Problem) -> PropertyListValue {
    if let number = Int64(text) { return .integer(number) }
    if let number = UInt64(text) { return .unsigned(number) }
    throw Problem("the value '\(text)' is invalid for '-int': expected a whole number of 64 bits")
  }

  @Sendable private static func real(_ text: String) throws(Problem) -> PropertyListValue {
    guard let number = Double(text), number.isFinite else {
      throw Problem("the value '\(text)' is invalid for '-float': expected a number")
    }
    return .real(number)
  }

  @Sendable private static func boolean(_ text: String) throws(Problem) -> PropertyListValue {
    switch text.lowercased() {
    case "true", "yes", "1": return .boolean(true)
    case "false", "no", "0": return .boolean(false)
    default:
      throw Problem(
        "the value '\(text)' is invalid for '-bool': expected true, false, yes, no, 1 or 0")
    }
  }

  @Sendable private static func date(_ text: String) throws(Problem) -> PropertyListValue {
    guard let date = ISO8601.date(text) else {
      throw Problem(
        "the value '\(text)' is invalid for '-date': expected a date such as 2001-01-01T00:00:00Z")
    }
    return .date(date)
  }
}

extension PropertyListValue {
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
