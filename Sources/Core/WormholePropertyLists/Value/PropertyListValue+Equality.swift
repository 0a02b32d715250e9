import FoundationEssentials

extension PropertyListValue: Hashable {
  /// Returns whether two values are equal: reals by bit pattern, integers by number, strings byte
  /// by byte, because another form of `é` names another file; keys as Swift's strings.
  public static func == (left: PropertyListValue, right: PropertyListValue) -> Bool {
    switch (left, right) {
    case (.string(let a), .string(let b)): a.hasSameBytes(as: b)
    case (.integer(let a), .integer(let b)): a == b
    case (.unsigned(let a), .unsigned(let b)): a == b
    case (.integer(let a), .unsigned(let b)), (.unsigned(let b), .integer(let a)):
      a >= 0 && UInt64(a) == b
    case (.real(let a), .real(let b)): a.bitPattern == b.bitPattern
    case (.boolean(let a), .boolean(let b)): a == b
    case (.date(let a), .date(let b)):
      a.timeIntervalSinceReferenceDate.bitPattern == b.timeIntervalSinceReferenceDate.bitPattern
    case (.data(let a), .data(let b)): a == b
    case (.array(let a), .array(let b)): a == b
    case (.dictionary(let a), .dictionary(let b)):
      // The library's `==`, specialized for this type, takes 20 kB of every program.
      a.count == b.count && a.allSatisfy { key, value in b[key].map { $0 == value } ?? false }
    default: false
    }
  }

  /// Feeds the value to a hasher; equal values have equal hashes.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .string(var string): string.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    case .integer(let integer): hasher.combine(UInt64(bitPattern: integer))
    case .unsigned(let integer): hasher.combine(integer)
    case .real(let real): hasher.combine(real.bitPattern)
    case .boolean(let boolean): hasher.combine(boolean)
    case .date(let date): hasher.combine(date.timeIntervalSinceReferenceDate.bitPattern)
    case .data(let data): hasher.combine(data)
    case .array(let array): hasher.combine(array)
    case .dictionary(let dictionary): hasher.combine(dictionary)
    }
  }
}

extension String {
  /// Whether two strings are equal byte for byte.
  func hasSameBytes(as other: String) -> Bool {
    // Swift's own comparison, which is fast, treats different forms of a character as equal.
    guard self == other, utf8.count == other.utf8.count else { return false }
    var (a, b) = (self, other)
    // `elementsEqual` takes tens of instructions for each byte.
    return a.withUTF8 { a in b.withUTF8 { b in a.indices.allSatisfy { a[$0] == b[$0] } } }
  }
}
