import FoundationEssentials

extension PropertyListValue: CustomStringConvertible {
  /// The value on one line for people, with the keys of dictionaries sorted.
  public var description: String {
    switch self {
    case .string(let string): "\"" + string.map(Self.escaped).joined() + "\""
    case .integer(let integer): String(integer)
    case .unsigned(let integer): String(integer)
    case .real(let real): String(real)
    case .boolean(let boolean): String(boolean)
    case .date(let date): Self.description(of: date)
    case .data(let data): "<\(data.count) bytes>"
    case .array(let array): "[" + array.map(\.description).joined(separator: ", ") + "]"
    case .dictionary(let dictionary): Self.description(of: dictionary)
    }
  }

  private static func escaped(_ character: Character) -> String {
    switch character {
    case "\"": "\\\""
    case "\\": "\\\\"
    case "\n": "\\n"
    case "\r\n": "\\r\\n"
    default:
      // Other characters that could move a terminal's cursor; text in any script is unchanged.
      character.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
        ? character.unicodeScalars.map { $0.escaped(asASCII: true) }.joined()
        : String(character)
    }
  }

  private static func description(of date: Date) -> String {
    let seconds = date.timeIntervalSinceReferenceDate
    guard CalendarTime.isWritable(seconds) else { return "date(\(seconds))" }
    return CalendarTime(secondsSinceReferenceDate: Int(seconds.rounded(.down))).description
  }

  private static func description(of dictionary: [String: PropertyListValue]) -> String {
    guard !dictionary.isEmpty else { return "[:]" }
    let entries = ordered(dictionary).map {
      "\(PropertyListValue.string($0.key)): \($0.value)"
    }
    return "[" + entries.joined(separator: ", ") + "]"
  }

  /// The entries of a dictionary in the order in which they are written as text.
  static func ordered(
    _ dictionary: [String: PropertyListValue]
  ) -> [(key: String, value: PropertyListValue)] {
    dictionary.sorted { $0.key.precedesInUTF8($1.key) }
  }
}

extension String {
  /// Returns whether the string precedes another one in the byte order of UTF-8.
  func precedesInUTF8(_ other: String) -> Bool {
    // The generic comparison, by an iterator, takes most of the time of writing a large dictionary.
    let order = utf8.withContiguousStorageIfAvailable { bytes in
      other.utf8.withContiguousStorageIfAvailable { others in
        for index in 0..<min(bytes.count, others.count) where bytes[index] != others[index] {
          return bytes[index] < others[index]
        }
        return bytes.count < others.count
      }
    }
    return order.flatMap { $0 } ?? utf8.lexicographicallyPrecedes(other.utf8)
  }
}
