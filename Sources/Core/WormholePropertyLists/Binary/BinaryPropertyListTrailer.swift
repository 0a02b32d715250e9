/// The last 32 bytes of a binary property list, which locate its parts.
struct BinaryPropertyListTrailer {
  static let size = 32
  static let headerSize = 8

  let offsetSize: Int
  let referenceSize: Int
  let objectCount: Int
  let topObject: Int
  let tableOffset: Int

  /// Reads the trailer; nil if it contradicts the size of the file.
  init?(of bytes: UnsafeRawBufferPointer) {
    guard bytes.count > Self.headerSize + Self.size else { return nil }
    let place = bytes.count - Self.size
    offsetSize = Int(bytes[place + 6])
    referenceSize = Int(bytes[place + 7])
    guard let objectCount = Int(exactly: bytes.bigEndian(at: place + 8)),
      let topObject = Int(exactly: bytes.bigEndian(at: place + 16)),
      let tableOffset = Int(exactly: bytes.bigEndian(at: place + 24)),
      (1...8).contains(offsetSize), (1...8).contains(referenceSize), topObject < objectCount,
      objectCount <= place, tableOffset > Self.headerSize, tableOffset <= place,
      objectCount * offsetSize == place - tableOffset,
      Self.canCount(to: objectCount, width: referenceSize),
      Self.canCount(to: tableOffset, width: offsetSize)
    else { return nil }
    self.objectCount = objectCount
    self.topObject = topObject
    self.tableOffset = tableOffset
  }

  static func canCount(to count: Int, width: Int) -> Bool {
    width == 8 || count < 1 << (8 * width)
  }
}

extension ByteBuffer {
  /// Appends what follows the objects: the table of their offsets, and the trailer.
  mutating func appendTable(of offsets: [Int], referenceSize: Int) {
    let tableOffset = count
    var offsetSize = 1
    while !BinaryPropertyListTrailer.canCount(to: tableOffset, width: offsetSize) {
      offsetSize *= 2
    }
    for offset in offsets { append(UInt64(offset), width: offsetSize) }
    append(bigEndian: UInt64(offsetSize) << 8 | UInt64(referenceSize))
    append(bigEndian: UInt64(offsets.count))
    append(bigEndian: UInt64(0))
    append(bigEndian: UInt64(tableOffset))
  }
}

extension [UInt8] {
  /// Whether bytes begin as a binary property list, and do not end as one.
  package var isCutOffPropertyList: Bool {
    withUnsafeBytes {
      $0.count >= BinaryPropertyListTrailer.headerSize
        && $0.bigEndian(at: 0) == BinaryPropertyListDocument.magic
        && BinaryPropertyListTrailer(of: $0) == nil
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the number in 8 bytes, most significant byte first.
  func bigEndian(at offset: Int) -> UInt64 {
    UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}

extension RandomAccessCollection where Element == UInt8, Index == Int {
  /// Returns the number in `width` bytes, most significant byte first.
  func bigEndian(at offset: Int, width: Int) -> UInt64 {
    if width == 1 { return UInt64(self[offset]) }
    var number: UInt64 = 0
    for index in offset..<(offset + width) { number = number << 8 | UInt64(self[index]) }
    return number
  }
}
