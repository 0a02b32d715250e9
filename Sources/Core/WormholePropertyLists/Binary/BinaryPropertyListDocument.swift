import FoundationEssentials

/// The parts of a `bplist00` file; each part is checked when it is read.
///
/// The rules are those of the version of CFBinaryPList.c that `PropertyListDecoder` uses, and
/// stricter where it is lax. The decoder reads without harm everything that this type accepts.
struct BinaryPropertyListDocument {
  enum Object {
    case boolean(Bool)
    case integer(Int64)
    case unsigned(UInt64)
    case real(Double)
    case date(Double)
    case data(Range<Int>)
    case asciiString(Range<Int>)
    case utf16String(Range<Int>)
    /// A reference of a keyed archive to one of its objects.
    case reference(Int64)
    /// The offset of the references, and the number of elements.
    case array(at: Int, count: Int)
    /// The offset of the references to the keys; the references to the values follow.
    case dictionary(at: Int, count: Int)
  }

  let bytes: [UInt8]
  let trailer: BinaryPropertyListTrailer
  private let admitsReferences: Bool

  /// "bplist00" as a number, because a comparison of characters costs hundreds of instructions.
  static let magic: UInt64 = 0x6270_6C69_7374_3030

  /// Whether content is a binary property list, of whatever version.
  static func hasMagic(_ bytes: [UInt8]) -> Bool {
    bytes.count >= 6 && bytes.bigEndian(at: 0, width: 6) == magic >> 16
  }

  init(_ bytes: [UInt8], admitsReferences: Bool = false) throws(PropertyListError) {
    guard bytes.count >= 8, bytes.bigEndian(at: 0, width: 8) == Self.magic else {
      throw PropertyListError(
        .unknownFormat, atByte: 6, "it is a binary property list of a version other than 00")
    }
    let place = bytes.count - BinaryPropertyListTrailer.size
    guard place > BinaryPropertyListTrailer.headerSize else {
      throw .malformed("it is cut short", at: bytes.count)
    }
    guard let trailer = bytes.withUnsafeBytes({ BinaryPropertyListTrailer(of: $0) }) else {
      throw .malformed("its trailer contradicts its size", at: place)
    }
    self.bytes = bytes
    self.trailer = trailer
    self.admitsReferences = admitsReferences
    try checkOffsets()
  }

  /// Checks every offset, even of an object without a reference, because Foundation reads them all.
  private func checkOffsets() throws(PropertyListError) {
    let objects = UInt64(BinaryPropertyListTrailer.headerSize)..<UInt64(trailer.tableOffset)
    for number in 0..<trailer.objectCount {
      let place = trailer.tableOffset + number * trailer.offsetSize
      guard objects.contains(bytes.bigEndian(at: place, width: trailer.offsetSize)) else {
        throw .malformed("an entry of its offset table points outside the objects", at: place)
      }
    }
  }

  /// Returns the offset of an object.
  func offset(of object: Int) -> Int {
    let place = trailer.tableOffset + object * trailer.offsetSize
    return Int(truncatingIfNeeded: bytes.bigEndian(at: place, width: trailer.offsetSize))
  }

  /// Returns the object that a container refers to with its reference number `index`.
  func reference(_ index: Int, of references: Int) throws(PropertyListError) -> Int {
    let place = references + index * trailer.referenceSize
    let number = bytes.bigEndian(at: place, width: trailer.referenceSize)
    guard number < UInt64(trailer.objectCount) else {
      throw .malformed("it refers to an object that it does not contain", at: place)
    }
    return Int(number)
  }

  /// Reads the head of an object and checks only that its content lies within the file.
  func object(at offset: Int) throws(PropertyListError) -> Object {
    let marker = bytes[offset]
    switch marker >> 4 {
    case 0x0 where marker == 0x08: return .boolean(false)
    case 0x0 where marker == 0x09: return .boolean(true)
    case 0x1: return try integer(at: offset)
    case 0x2, 0x3: return try real(at: offset)
    case 0x4: return .data(try content(at: offset, unit: 1))
    case 0x5: return .asciiString(try content(at: offset, unit: 1))
    case 0x6: return .utf16String(try content(at: offset, unit: 2))
    // Foundation writes at most 4 bytes, and reads no more.
    case 0x8 where admitsReferences && marker <= 0x83:
      return .reference(Int64(try number(at: offset + 1, width: Int(marker & 0x0F) + 1)))
    case 0xA:
      let references = try content(at: offset, unit: trailer.referenceSize)
      return .array(at: references.lowerBound, count: references.count / trailer.referenceSize)
    case 0xD:
      let unit = 2 * trailer.referenceSize
      let references = try content(at: offset, unit: unit)
      return .dictionary(at: references.lowerBound, count: references.count / unit)
    default: throw Self.disallowed(marker, at: offset)
    }
  }

  private static func disallowed(_ marker: UInt8, at offset: Int) -> PropertyListError {
    let name: String? =
      switch marker >> 4 {
      case 0x0:
        [0x00: "a null", 0x0C: "a URL", 0x0D: "a URL", 0x0E: "a UUID", 0x0F: "a filler"][marker]
      case 0x8: "a UID of a keyed archive"
      case 0xB: "an ordered set"
      case 0xC: "a set"
      default: nil
      }
    guard let name else {
      return .malformed("an object has the unknown type \(marker)", at: offset)
    }
    return PropertyListError(
      .disallowedType, atByte: offset, "it holds \(name), which messages and values cannot")
  }

  private func number(at offset: Int, width: Int) throws(PropertyListError) -> UInt64 {
    guard offset + width <= trailer.tableOffset else { throw Self.cutShort(at: offset) }
    return bytes.bigEndian(at: offset, width: width)
  }

  private static func cutShort(at offset: Int) -> PropertyListError {
    .malformed("an object does not end before the offset table", at: offset)
  }

  /// Integers of 1, 2 and 4 bytes are unsigned, 8 bytes are signed, and 16 bytes are a `UInt64`
  /// after zeros.
  private func integer(at offset: Int) throws(PropertyListError) -> Object {
    let exponent = Int(bytes[offset] & 0x0F)
    switch exponent {
    case 0...3:
      let bits = try number(at: offset + 1, width: 1 << exponent)
      return .integer(Int64(bitPattern: bits))
    case 4:
      let high = try number(at: offset + 1, width: 8)
      let low = try number(at: offset + 9, width: 8)
      guard high == 0 else { throw .malformed("an integer does not fit 64 bits", at: offset) }
      return Int64(exactly: low).map(Object.integer) ?? .unsigned(low)
    default: throw .malformed("an integer has an unknown width", at: offset)
    }
  }

  private func real(at offset: Int) throws(PropertyListError) -> Object {
    switch bytes[offset] {
    case 0x22:
      let bits = try number(at: offset + 1, width: 4)
      return .real(Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))))
    case 0x23:
      return .real(Double(bitPattern: try number(at: offset + 1, width: 8)))
    case 0x33:
      let seconds = Double(bitPattern: try number(at: offset + 1, width: 8))
      // Date.description traps on a NaN in FoundationEssentials.
      guard seconds.isFinite else { throw .malformed("a date is not a point in time", at: offset) }
      return .date(seconds)
    default: throw .malformed("a number has an unknown width", at: offset)
    }
  }

  /// Returns the bytes after the head of an object whose count is in units of `unit` bytes.
  private func content(at offset: Int, unit: Int) throws(PropertyListError) -> Range<Int> {
    var count = UInt64(bytes[offset] & 0x0F)
    var start = offset + 1
    if count == 0x0F {
      guard start < trailer.tableOffset, bytes[start] & 0xF0 == 0x10, bytes[start] & 0x0F <= 3
      else { throw .malformed("a count is not an integer", at: start) }
      let width = 1 << Int(bytes[start] & 0x0F)
      count = try number(at: start + 1, width: width)
      start += 1 + width
    }
    guard count <= UInt64(trailer.tableOffset - start) / UInt64(unit) else {
      throw Self.cutShort(at: offset)
    }
    return start..<(start + Int(count) * unit)
  }

  // MARK: Strings

  func checkASCII(_ range: Range<Int>) throws(PropertyListError) {
    // All at once, which is fast; the place matters only for the error.
    let all = bytes.withUnsafeBufferPointer { $0[range].reduce(0, |) }
    guard all >= 0x80, let index = range.first(where: { bytes[$0] >= 0x80 }) else { return }
    throw .malformed("a string marked as ASCII is not ASCII", at: index)
  }

  /// Refuses lone surrogates, because no Swift string can hold one.
  func checkUTF16(_ range: Range<Int>) throws(PropertyListError) {
    var index = range.lowerBound
    while index < range.upperBound {
      let high = bytes[index]
      guard high & 0xF8 == 0xD8 else {
        index += 2
        continue
      }
      guard high & 0xFC == 0xD8, index + 2 < range.upperBound, bytes[index + 2] & 0xFC == 0xDC
      else { throw .malformed("a string is not valid UTF-16", at: index) }
      index += 4
    }
  }

  /// Returns whether one range of bytes precedes another in byte order.
  func precedes(_ one: Range<Int>, _ other: Range<Int>) -> Bool {
    for index in 0..<min(one.count, other.count) {
      let (byte, otherByte) = (bytes[one.lowerBound + index], bytes[other.lowerBound + index])
      if byte != otherByte { return byte < otherByte }
    }
    return one.count < other.count
  }

  /// Returns the string whose head is at an offset.
  func string(at offset: Int) throws(PropertyListError) -> String {
    switch try object(at: offset) {
    case .asciiString(let range): asciiString(range)
    case .utf16String(let range): utf16String(range)
    default: throw .malformed("a key of a dictionary is not a string", at: offset)
    }
  }

  func asciiString(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

  func utf16String(_ range: Range<Int>) -> String {
    let units = stride(from: range.lowerBound, to: range.upperBound, by: 2).map {
      UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
    }
    return String(decoding: units, as: UTF16.self)
  }
}
