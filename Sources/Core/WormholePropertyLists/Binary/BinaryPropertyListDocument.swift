import FoundationEssentials

/// The parts of a `bplist00` file; each part is checked when it is read.
///
/// The rules are those of the version of CFBinaryPList.c that `PropertyListDecoder` uses, and
/// stricter where that version is lax. The decoder reads everything that this type accepts without
/// harm.
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
  let objectCount: Int
  let topObject: Int
  let referenceSize: Int
  private let admitsReferences: Bool
  private let tableOffset: Int
  private let offsetSize: Int

  private static let headerSize = BinaryPropertyListTrailer.headerSize

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
    guard bytes.count > Self.headerSize + BinaryPropertyListTrailer.size else {
      throw PropertyListError(.malformed, atByte: bytes.count, "it is cut short")
    }
    guard let trailer = bytes.withUnsafeBytes({ BinaryPropertyListTrailer(of: $0) }) else {
      throw PropertyListError(
        .malformed, atByte: bytes.count - BinaryPropertyListTrailer.size,
        "its trailer contradicts its size")
    }
    self.bytes = bytes
    self.admitsReferences = admitsReferences
    offsetSize = trailer.offsetSize
    referenceSize = trailer.referenceSize
    objectCount = trailer.objectCount
    topObject = trailer.topObject
    tableOffset = trailer.tableOffset
    try checkOffsets()
  }

  /// Checks every offset, even of an object without a reference to it, because Foundation reads
  /// them all.
  private func checkOffsets() throws(PropertyListError) {
    for number in 0..<objectCount {
      let place = tableOffset + number * offsetSize
      let offset = bytes.bigEndian(at: place, width: offsetSize)
      guard offset >= UInt64(Self.headerSize), offset < UInt64(tableOffset) else {
        throw PropertyListError(
          .malformed, atByte: place, "an entry of its offset table points outside the objects")
      }
    }
  }

  /// Returns the offset of an object.
  func offset(of object: Int) -> Int {
    Int(
      truncatingIfNeeded: bytes.bigEndian(
        at: tableOffset + object * offsetSize, width: offsetSize))
  }

  /// Returns the object that a container refers to with its reference number `index`.
  func reference(_ index: Int, of references: Int) throws(PropertyListError) -> Int {
    let place = references + index * referenceSize
    let number = bytes.bigEndian(at: place, width: referenceSize)
    guard number < UInt64(objectCount) else {
      throw PropertyListError(
        .malformed, atByte: place, "it refers to an object that it does not contain")
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
      let references = try content(at: offset, unit: referenceSize)
      return .array(at: references.lowerBound, count: references.count / referenceSize)
    case 0xD:
      let references = try content(at: offset, unit: 2 * referenceSize)
      return .dictionary(at: references.lowerBound, count: references.count / 2 / referenceSize)
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
      return PropertyListError(
        .malformed, atByte: offset, "an object has the unknown type \(marker)")
    }
    return PropertyListError(
      .disallowedType, atByte: offset, "it holds \(name), which messages and values cannot")
  }

  private func number(at offset: Int, width: Int) throws(PropertyListError) -> UInt64 {
    guard offset + width <= tableOffset else { throw Self.cutShort(at: offset) }
    return bytes.bigEndian(at: offset, width: width)
  }

  private static func cutShort(at offset: Int) -> PropertyListError {
    PropertyListError(.malformed, atByte: offset, "an object does not end before the offset table")
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
      guard high == 0 else {
        throw PropertyListError(.malformed, atByte: offset, "an integer does not fit 64 bits")
      }
      return Int64(exactly: low).map(Object.integer) ?? .unsigned(low)
    default:
      throw PropertyListError(.malformed, atByte: offset, "an integer has an unknown width")
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
      guard seconds.isFinite else {
        throw PropertyListError(.malformed, atByte: offset, "a date is not a point in time")
      }
      return .date(seconds)
    default:
      throw PropertyListError(.malformed, atByte: offset, "a number has an unknown width")
    }
  }

  /// Returns the bytes after the head of an object whose count is in units of `unit` bytes.
  private func content(at offset: Int, unit: Int) throws(PropertyListError) -> Range<Int> {
    var count = UInt64(bytes[offset] & 0x0F)
    var start = offset + 1
    if count == 0x0F {
      guard start < tableOffset, bytes[start] & 0xF0 == 0x10, bytes[start] & 0x0F <= 3 else {
        throw PropertyListError(.malformed, atByte: start, "a count is not an integer")
      }
      let width = 1 << Int(bytes[start] & 0x0F)
      count = try number(at: start + 1, width: width)
      start += 1 + width
    }
    guard count <= UInt64(tableOffset - start) / UInt64(unit) else {
      throw Self.cutShort(at: offset)
    }
    return start..<(start + Int(count) * unit)
  }
}
