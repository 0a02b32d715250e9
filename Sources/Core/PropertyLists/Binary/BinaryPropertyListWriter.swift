import FoundationEssentials

/// Writes `bplist00` as Apple's CFBinaryPList.c lays it out: header, objects, offset table, trailer.
///
/// Equal values become equal bytes: objects are written in breadth-first order, and keys are sorted
/// by their UTF-8 bytes. Nothing recurses. The writer already refuses a value that is nested too
/// deeply for our own reader.
struct BinaryPropertyListWriter {
  private var objects: [PropertyListValue] = []
  /// The references of all containers, in the order of `objects`. A dictionary lists its keys
  /// first, then its values.
  private var references: [UInt32] = []
  private var strings = StringTable()
  private var output: [UInt8] = []
  private var referenceSize = 1
  private let spellsNullWide: Bool
  /// Keys that read "$null". A key is never `nil`, so these are always written in UTF-16.
  private var nullKeys: [Int] = []
  private let limits: PropertyListLimits?
  /// The bytes of strings and data, with each reference to a string counted.
  private var contentBytes = 0

  /// Below this number of nodes, looking for equal strings costs more than it saves.
  private static let leastObjectsToUnique = 32

  /// - Parameter spellsNullWide: Whether the string "$null" is written in UTF-16. In ASCII it is
  ///   the spelling that `PropertyListEncoder` uses for `nil`, and the decoder reads it as `nil`.
  static func bytes(
    of value: PropertyListValue, spellsNullWide: Bool = false, limits: PropertyListLimits? = nil
  ) throws(PropertyListError) -> [UInt8] {
    var writer = BinaryPropertyListWriter(spellsNullWide: spellsNullWide, limits: limits)
    try writer.flatten(value)
    let bytes = writer.serialize()
    if let limits { try writer.check(bytes, limits) }
    return bytes
  }

  private init(spellsNullWide: Bool, limits: PropertyListLimits?) {
    self.spellsNullWide = spellsNullWide
    self.limits = limits
  }

  /// Checks what a reader with these limits would refuse. The counts are upper bounds: a string of
  /// n bytes in UTF-8 costs a reader at most 3 n. Only a file near a limit is scanned.
  private func check(_ bytes: [UInt8], _ limits: PropertyListLimits) throws(PropertyListError) {
    let nodes = references.count + 1
    let expandedBytes = 3 * contentBytes + nodes * PropertyListLimits.bytesPerNode
    guard
      bytes.count > limits.maximumBytes || nodes > limits.maximumNodes
        || expandedBytes > limits.maximumExpandedBytes
    else { return }
    try PropertyListGuard.check(bytes, limits: limits)
  }

  /// Lists every object in breadth-first order; the position in the list is the object's number.
  private mutating func flatten(_ root: PropertyListValue) throws(PropertyListError) {
    objects.reserveCapacity(16)
    references.reserveCapacity(16)
    objects.append(root)
    if case .string(let string) = root { contentBytes += string.utf8.count }
    var depth = 1
    var levelEnd = 1
    var index = 0
    while index < objects.count {
      if index == levelEnd {
        depth += 1
        levelEnd = objects.count
      }
      switch objects[index] {
      case .array(let array):
        try checkDepth(depth)
        for element in array { reference(element) }
      case .dictionary(let dictionary):
        try checkDepth(depth)
        flatten(dictionary)
      case .date(let date): try Self.checkFinite(date)
      case .data(let data): contentBytes += data.count
      default: break
      }
      index += 1
    }
  }

  private mutating func flatten(_ dictionary: [String: PropertyListValue]) {
    if dictionary.count == 1, let (key, value) = dictionary.first {
      referenceKey(key)
      reference(value)
      return
    }
    let sorted = dictionary.sorted { $0.key.precedesInUTF8($1.key) }
    for entry in sorted { referenceKey(entry.key) }
    for entry in sorted { reference(entry.value) }
  }

  private mutating func referenceKey(_ key: String) {
    guard key == "$null" else { return reference(.string(key)) }
    nullKeys.append(objects.count)
    contentBytes += key.utf8.count
    references.append(UInt32(truncatingIfNeeded: objects.count))
    objects.append(.string(key))
  }

  private mutating func reference(_ value: PropertyListValue) {
    let next = UInt32(truncatingIfNeeded: objects.count)
    var number = next
    if case .string(let string) = value {
      contentBytes += string.utf8.count
      if next >= Self.leastObjectsToUnique { number = strings.number(of: string, orNew: next) }
    }
    references.append(number)
    guard number == next else { return }
    precondition(objects.count < Int(UInt32.max), "a property list has at most 2^32 - 1 objects")
    objects.append(value)
  }

  private func checkDepth(_ depth: Int) throws(PropertyListError) {
    let deepest = PropertyListLimits.deepestNesting
    let maximum = min(limits?.maximumDepth ?? deepest, deepest)
    guard depth <= maximum else { throw .nestedTooDeeply(maximum) }
  }

  static func checkFinite(_ date: Date) throws(PropertyListError) {
    guard date.timeIntervalSinceReferenceDate.isFinite else {
      throw PropertyListError(
        .unrepresentable, at: .keyPath(""), "it holds a date that is not a point in time")
    }
  }

  private mutating func serialize() -> [UInt8] {
    referenceSize = Self.width(for: objects.count)
    output.reserveCapacity(64 + objects.count * 16)
    output.append(contentsOf: "bplist00".utf8)
    var offsets: [Int] = []
    offsets.reserveCapacity(objects.count)
    var cursor = 0
    nullKeys.reverse()
    for (number, object) in objects.enumerated() {
      offsets.append(output.count)
      if case .string(let string) = object {
        let isNullKey = nullKeys.last == number
        if isNullKey { nullKeys.removeLast() }
        write(string, wide: isNullKey || (spellsNullWide && string == "$null"))
      } else {
        write(object, cursor: &cursor)
      }
    }
    let tableOffset = output.count
    let offsetSize = Self.width(for: tableOffset)
    for offset in offsets { output.appendBigEndian(UInt64(offset), width: offsetSize) }
    output.append(contentsOf: [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)])
    output.appendBigEndian(UInt64(objects.count), width: 8)
    output.appendBigEndian(0, width: 8)
    output.appendBigEndian(UInt64(tableOffset), width: 8)
    return output
  }

  private mutating func write(_ object: PropertyListValue, cursor: inout Int) {
    switch object {
    case .string(let string): write(string)
    case .integer(let integer): write(integer)
    case .unsigned(let integer):
      if let signed = Int64(exactly: integer) { return write(signed) }
      // 16 bytes, because 8 bytes with the high bit set mean a negative number.
      output.append(0x14)
      output.appendBigEndian(0, width: 8)
      output.appendBigEndian(integer, width: 8)
    case .real(let real):
      output.append(0x23)
      output.appendBigEndian(real.bitPattern, width: 8)
    case .boolean(let boolean): output.append(boolean ? 0x09 : 0x08)
    case .date(let date):
      output.append(0x33)
      output.appendBigEndian(date.timeIntervalSinceReferenceDate.bitPattern, width: 8)
    case .data(let data):
      writeMarker(0x40, count: data.count)
      output.append(contentsOf: data)
    case .array(let array):
      writeMarker(0xA0, count: array.count)
      writeReferences(array.count, cursor: &cursor)
    case .dictionary(let dictionary):
      writeMarker(0xD0, count: dictionary.count)
      writeReferences(dictionary.count * 2, cursor: &cursor)
    }
  }

  private mutating func writeReferences(_ count: Int, cursor: inout Int) {
    for index in cursor..<(cursor + count) {
      if referenceSize == 1 {
        output.append(UInt8(truncatingIfNeeded: references[index]))
      } else {
        output.appendBigEndian(UInt64(references[index]), width: referenceSize)
      }
    }
    cursor += count
  }

  /// Writes 1, 2 and 4 bytes unsigned and 8 bytes signed, so a negative number always takes 8.
  private mutating func write(_ integer: Int64) {
    let bits = UInt64(bitPattern: integer)
    let exponent: UInt8 =
      switch bits {
      case ...0xFF: 0
      case ...0xFFFF: 1
      case ...0xFFFF_FFFF: 2
      default: 3
      }
    output.append(0x10 | exponent)
    output.appendBigEndian(bits, width: 1 << Int(exponent))
  }

  private mutating func write(_ string: String, wide: Bool = false) {
    var string = string
    let start = output.count
    let fits = string.withUTF8 { (bytes) -> Bool in
      writeMarker(0x50, count: bytes.count)
      output.append(contentsOf: bytes)
      return bytes.allSatisfy { $0 < 0x80 }
    }
    guard wide || !fits else { return }
    output.removeSubrange(start...)
    writeMarker(0x60, count: string.utf16.count)
    for unit in string.utf16 {
      output.append(UInt8(truncatingIfNeeded: unit >> 8))
      output.append(UInt8(truncatingIfNeeded: unit))
    }
  }

  private mutating func writeMarker(_ marker: UInt8, count: Int) {
    if count < 15 {
      output.append(marker | UInt8(count))
    } else {
      output.append(marker | 0x0F)
      write(Int64(count))
    }
  }

  /// Returns the number of bytes for numbers up to and including `count`, as a power of two.
  /// Foundation requires room for `count` itself when it reads.
  private static func width(for count: Int) -> Int {
    switch count {
    case ..<0x100: 1
    case ..<0x1_0000: 2
    case ..<0x1_0000_0000: 4
    default: 8
    }
  }
}

extension PropertyListError {
  static func nestedTooDeeply(_ maximum: Int = PropertyListLimits.deepestNesting) -> Self {
    Self(.tooDeep, at: .keyPath(""), "its containers are nested more than \(maximum) deep")
  }
}

extension [UInt8] {
  /// Appends the low `width` bytes, most significant byte first.
  mutating func appendBigEndian(_ number: UInt64, width: Int) {
    var shift = UInt64(width) * 8
    while shift > 0 {
      shift -= 8
      append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }
}

extension String {
  /// Returns whether the string precedes another one in the byte order of UTF-8.
  func precedesInUTF8(_ other: String) -> Bool {
    // The generic comparison, byte by byte through an iterator, takes most of the time of writing a
    // large dictionary.
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
