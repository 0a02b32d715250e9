import WormholePropertyLists

/// A member of a tar archive, in the format "pax" (pax(1p), tar(5)): a ustar header of 512 bytes,
/// and before it, if a field does not fit there, a header of type `x` with records of text.
struct TarEntry: Equatable {
  enum Kind: UInt8 {
    case file = 0x30
    case link = 0x32
    case directory = 0x35
    case fifo = 0x36
  }

  struct Malformed: Error, Equatable {
    let reason: String

    init(_ reason: String) { self.reason = reason }
  }

  var path: [UInt8]
  var kind: Kind
  var permissions: UInt32
  /// The size of the content; 0 for all entries but files.
  var size: Int64 = 0
  /// The time of the last modification.
  var seconds: Int64 = 0
  var nanoseconds: Int64 = 0
  var target: [UInt8] = []

  static let block = 512
  /// The longest set of records: a path may have any number of directories.
  static let maximumRecords = 16 << 20
  private static let records: UInt8 = 0x78
  private static let nameBytes = 100
  /// The largest number in a field of eleven octal digits, plus one.
  private static let octalLimit: Int64 = 1 << 33

  /// The number of bytes after a content, up to the next block.
  static func padding(after size: Int64) -> Int {
    (block - Int(size % Int64(block))) % block
  }

  // MARK: Writing

  /// The headers.
  var bytes: [UInt8] {
    var text: [UInt8] = []
    if path.count > Self.nameBytes { text += Self.record("path", path) }
    if target.count > Self.nameBytes { text += Self.record("linkpath", target) }
    if size >= Self.octalLimit { text += Self.record("size", Array("\(size)".utf8)) }
    let isPlainTime = nanoseconds == 0 && (0..<Self.octalLimit).contains(seconds)
    if !isPlainTime { text += Self.record("mtime", Array(time.utf8)) }
    let header = Self.header(
      path, type: kind.rawValue, permissions: permissions, size: size, seconds: seconds,
      target: target)
    guard !text.isEmpty else { return header }
    let before = Self.header(
      Array("records".utf8), type: Self.records, permissions: 0o600, size: Int64(text.count),
      seconds: 0, target: [])
    let padding = Self.padding(after: Int64(text.count))
    return before + text + [UInt8](repeating: 0, count: padding) + header
  }

  /// Decimal seconds; before 1970 the fraction counts towards the past in the text, and forward in `stat`.
  private var time: String {
    guard nanoseconds != 0 else { return "\(seconds)" }
    let isPast = seconds < 0
    let (whole, part) =
      isPast ? (-(seconds + 1), 1_000_000_000 - nanoseconds) : (seconds, nanoseconds)
    return (isPast ? "-" : "") + "\(whole)." + part.padded(to: 9)
  }

  /// `LENGTH KEY=VALUE` and a line break; the length counts itself.
  private static func record(_ key: String, _ value: [UInt8]) -> [UInt8] {
    let rest = Array(" \(key)=".utf8) + value + [0x0A]
    var length = rest.count
    while "\(length)".utf8.count + rest.count != length {
      length = "\(length)".utf8.count + rest.count
    }
    return Array("\(length)".utf8) + rest
  }

  private static func header(
    _ path: [UInt8], type: UInt8, permissions: UInt32, size: Int64, seconds: Int64, target: [UInt8]
  ) -> [UInt8] {
    var block = [UInt8](repeating: 0, count: block)
    func put(_ bytes: some Sequence<UInt8>, at offset: Int) {
      for (index, byte) in bytes.enumerated() { block[offset + index] = byte }
    }
    func octal(_ number: Int64, digits: Int) -> [UInt8] {
      let limit: Int64 = (1 << (3 * Int64(digits))) - 1
      return Array(min(max(number, 0), limit).padded(to: digits, radix: 8).utf8)
    }
    put(path.prefix(nameBytes), at: 0)
    put(octal(Int64(permissions), digits: 7), at: 100)
    put(octal(0, digits: 7), at: 108)
    put(octal(0, digits: 7), at: 116)
    put(octal(size, digits: 11), at: 124)
    put(octal(seconds, digits: 11), at: 136)
    put([type], at: 156)
    put(target.prefix(nameBytes), at: 157)
    put("ustar\u{0}00".utf8, at: 257)
    put(octal(checksum(of: block), digits: 6) + [0, 0x20], at: 148)
    return block
  }

  /// The sum of all bytes, with blanks in place of the sum itself.
  private static func checksum(of block: [UInt8]) -> Int64 {
    block.enumerated().reduce(0) { sum, next in
      sum + Int64((148..<156).contains(next.offset) ? 0x20 : next.element)
    }
  }
}

// MARK: Reading

extension TarEntry {
  enum Header {
    case entry(TarEntry)
    /// Records of this size follow, which belong to the next header.
    case records(Int)
    case end
  }

  static func read(_ block: [UInt8]) throws(Malformed) -> Header {
    if block.allSatisfy({ $0 == 0 }) { return .end }
    guard try octal(block[148..<156]) == checksum(of: block) else {
      throw Malformed("the checksum of a header is wrong")
    }
    guard block[257..<262].elementsEqual("ustar".utf8) else {
      throw Malformed("it is not a tar archive")
    }
    let size = try octal(block[124..<136])
    if block[156] == records {
      guard size <= Int64(maximumRecords) else { throw Malformed("a header is too long") }
      return .records(Int(size))
    }
    guard let kind = Kind(rawValue: block[156]) else {
      throw Malformed("there is a member of the unknown type \(block[156])")
    }
    return .entry(
      TarEntry(
        path: try text(block[0..<100]), kind: kind,
        permissions: UInt32(truncatingIfNeeded: try octal(block[100..<108])), size: size,
        seconds: try octal(block[136..<148]), target: try text(block[157..<257])))
  }

  mutating func apply(records: [UInt8]) throws(Malformed) {
    var rest = records[...]
    while let digits = rest.firstIndex(of: 0x20) {
      guard let length = Int(String(decoding: rest[..<digits], as: UTF8.self)),
        length > digits - rest.startIndex + 1, length <= rest.count,
        rest[rest.startIndex + length - 1] == 0x0A
      else { throw Malformed("a record of a header is wrong") }
      let record = rest[(digits + 1)..<(rest.startIndex + length - 1)]
      rest = rest.dropFirst(length)
      guard let equals = record.firstIndex(of: 0x3D) else {
        throw Malformed("a record of a header is wrong")
      }
      try set(String(decoding: record[..<equals], as: UTF8.self), Array(record[(equals + 1)...]))
    }
    guard rest.isEmpty else { throw Malformed("a record of a header is wrong") }
  }

  private mutating func set(_ key: String, _ value: [UInt8]) throws(Malformed) {
    switch key {
    case "path": path = value
    case "linkpath": target = value
    case "size":
      guard let number = Int64(String(decoding: value, as: UTF8.self)), number >= 0 else {
        throw Malformed("a size is wrong")
      }
      size = number
    case "mtime": try setTime(String(decoding: value, as: UTF8.self))
    // Other programs may write more fields.
    default: return
    }
  }

  private mutating func setTime(_ text: String) throws(Malformed) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let digits = (parts.count > 1 ? String(parts[1]) : "0").prefix(9)
    guard let whole = parts.first.flatMap({ Int64($0) }), let fraction = Int64(digits),
      fraction >= 0
    else { throw Malformed("a time is wrong") }
    let part = (digits.count..<9).reduce(fraction) { number, _ in number * 10 }
    (seconds, nanoseconds) = (whole, part)
    guard text.hasPrefix("-"), part > 0 else { return }
    guard whole > .min else { throw Malformed("a time is wrong") }
    (seconds, nanoseconds) = (whole - 1, 1_000_000_000 - part)
  }

  private static func octal(_ field: ArraySlice<UInt8>) throws(Malformed) -> Int64 {
    let digits = field.prefix { $0 != 0 && $0 != 0x20 }
    guard digits.allSatisfy({ (0x30...0x37).contains($0) }), digits.count < field.count,
      let number = Int64("0" + String(decoding: digits, as: UTF8.self), radix: 8)
    else { throw Malformed("a number in a header is wrong") }
    return number
  }

  /// The text that ends with a NUL, or fills the field; nothing may hide behind the NUL.
  private static func text(_ field: ArraySlice<UInt8>) throws(Malformed) -> [UInt8] {
    let text = field.prefix { $0 != 0 }
    guard field[text.endIndex...].allSatisfy({ $0 == 0 }) else {
      throw Malformed("a name has a NUL")
    }
    return Array(text)
  }
}
