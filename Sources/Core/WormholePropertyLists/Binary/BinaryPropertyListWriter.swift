import FoundationEssentials

/// Writes `bplist00` as Apple's CFBinaryPList.c lays it out: header, objects, offset table, trailer.
///
/// Equal values become equal bytes: objects are written in breadth-first order, and keys are sorted
/// by their UTF-8 bytes. Nothing recurses. The writer already refuses a value that is nested too
/// deeply for our own reader.
///
/// The bytes of strings and numbers are written as soon as they are reached. The references of the
/// containers, whose width depends on the number of all objects, are put between them at the end,
/// and so is large data, which is copied once.
struct BinaryPropertyListWriter {
  private struct Container {
    let value: PropertyListValue
    let number: Int
  }

  private struct Entry {
    let prefix: UInt64
    let key: String
    let value: PropertyListValue
  }

  /// The containers in the order of their numbers.
  private var containers: [Container] = []
  /// The references of all containers, in the same order. A dictionary lists its keys first, then
  /// its values.
  private var references: [UInt32] = []
  private struct Large {
    let data: Data
    /// The number of bytes of `leaves` before it.
    let place: Int
  }

  /// The scalars, in the order of their numbers.
  private var leaves: [UInt8] = []
  /// Data that is missing in them.
  private var large: [Large] = []
  private var largeBytes = 0
  /// For each object, the bytes of the leaves before it, large data included.
  private var offsets: [Int] = []
  private var strings = StringTable()
  private let spellsNullWide: Bool
  private let limits: PropertyListLimits?
  /// The bytes of strings and data, with each reference to a string counted.
  private var contentBytes = 0

  /// Data of at least this size is not copied into the leaves.
  private static let leastLargeBytes = 4_096

  /// Below this number of nodes, looking for equal strings costs more than it saves.
  private static let leastObjectsToUnique = 32

  /// - Parameter spellsNullWide: Whether the string "$null" is written in UTF-16. In ASCII it is
  ///   the spelling that `PropertyListEncoder` uses for `nil`, and the decoder reads it as `nil`.
  static func bytes(
    of value: PropertyListValue, spellsNullWide: Bool = false, limits: PropertyListLimits? = nil
  ) throws(PropertyListError) -> [UInt8] {
    var writer = BinaryPropertyListWriter(spellsNullWide: spellsNullWide, limits: limits)
    try writer.flatten(value)
    let bytes = writer.serialized()
    if let limits { try writer.check(bytes, limits) }
    return bytes
  }

  private init(spellsNullWide: Bool, limits: PropertyListLimits?) {
    self.spellsNullWide = spellsNullWide
    self.limits = limits
    containers.reserveCapacity(8)
    leaves.reserveCapacity(256)
    offsets.reserveCapacity(32)
    references.reserveCapacity(32)
  }

  /// Refuses values that a reader with these limits would refuse. The counts are upper bounds: a
  /// string of n bytes in UTF-8 costs a reader at most 3 n. Only a file near a limit is scanned.
  private func check(_ bytes: [UInt8], _ limits: PropertyListLimits) throws(PropertyListError) {
    let nodes = references.count + 1
    let expandedBytes = 3 * contentBytes + nodes * PropertyListLimits.bytesPerNode
    guard
      bytes.count > limits.maximumBytes || nodes > limits.maximumNodes
        || expandedBytes > limits.maximumExpandedBytes
    else { return }
    try PropertyListGuard.check(bytes, limits: limits)
  }

  /// Numbers every object in breadth-first order.
  private mutating func flatten(_ root: PropertyListValue) throws(PropertyListError) {
    try add(root)
    var depth = 0
    var levelEnd = 0
    var index = 0
    while index < containers.count {
      if index == levelEnd {
        depth += 1
        levelEnd = containers.count
        try checkDepth(depth)
      }
      switch containers[index].value {
      case .array(let array): for element in array { try reference(element) }
      case .dictionary(let dictionary): try flatten(dictionary)
      default: break
      }
      index += 1
    }
  }

  private mutating func flatten(
    _ dictionary: [String: PropertyListValue]
  ) throws(PropertyListError) {
    var entries: [Entry] = []
    entries.reserveCapacity(dictionary.count)
    for (key, value) in dictionary {
      entries.append(Entry(prefix: key.prefixInUTF8, key: key, value: value))
    }
    if entries.count > 1 {
      entries.sort {
        $0.prefix == $1.prefix ? $0.key.precedesInUTF8($1.key) : $0.prefix < $1.prefix
      }
    }
    for entry in entries { referenceKey(entry.key) }
    for entry in entries { try reference(entry.value) }
  }

  /// A key is never `nil`, so one that reads "$null" is always written in UTF-16.
  private mutating func referenceKey(_ key: String) {
    guard key == "$null" else { return reference(string: key) }
    references.append(UInt32(truncatingIfNeeded: offsets.count))
    contentBytes += key.utf8.count
    number()
    write(key, wide: true)
  }

  private mutating func reference(_ value: PropertyListValue) throws(PropertyListError) {
    if case .string(let string) = value { return reference(string: string) }
    references.append(UInt32(truncatingIfNeeded: offsets.count))
    try add(value)
  }

  private mutating func reference(string: String) {
    let next = UInt32(truncatingIfNeeded: offsets.count)
    let number =
      next < Self.leastObjectsToUnique ? next : strings.number(of: string, orNew: next)
    references.append(number)
    if number == next { add(string) } else { contentBytes += string.utf8.count }
  }

  /// Gives the next number to an object that is about to be added.
  private mutating func number() {
    precondition(offsets.count < Int(UInt32.max), "a property list has at most 2^32 - 1 objects")
    offsets.append(leaves.count + largeBytes)
  }

  private mutating func add(_ string: String) {
    contentBytes += string.utf8.count
    number()
    write(string, wide: spellsNullWide && string == "$null")
  }

  private mutating func add(_ value: PropertyListValue) throws(PropertyListError) {
    if case .string(let string) = value { return add(string) }
    let number = offsets.count
    self.number()
    switch value {
    case .array, .dictionary: containers.append(Container(value: value, number: number))
    case .string: break
    case .integer(let integer): leaves.appendInteger(integer)
    case .unsigned(let integer):
      if let signed = Int64(exactly: integer) { return leaves.appendInteger(signed) }
      // 16 bytes, because 8 bytes with the high bit set mean a negative number.
      leaves.append(0x14)
      leaves.appendBigEndian(0)
      leaves.appendBigEndian(integer)
    case .real(let real):
      leaves.append(0x23)
      leaves.appendBigEndian(real.bitPattern)
    case .boolean(let boolean): leaves.append(boolean ? 0x09 : 0x08)
    case .date(let date):
      try Self.checkFinite(date)
      leaves.append(0x33)
      leaves.appendBigEndian(date.timeIntervalSinceReferenceDate.bitPattern)
    case .data(let data):
      contentBytes += data.count
      leaves.appendMarker(0x40, count: data.count)
      guard data.count >= Self.leastLargeBytes else { return leaves.append(contentsOf: data) }
      large.append(Large(data: data, place: leaves.count))
      largeBytes += data.count
    }
  }

  private mutating func write(_ string: String, wide: Bool) {
    let utf8 = string.utf8
    // Only ASCII has as many bytes as UTF-16 units; Swift knows both counts of an ASCII string.
    guard wide || utf8.count != string.utf16.count else {
      leaves.appendMarker(0x50, count: utf8.count)
      // The generic way uses an iterator.
      guard utf8.withContiguousStorageIfAvailable({ leaves.append(contentsOf: $0) }) == nil else {
        return
      }
      return leaves.append(contentsOf: utf8)
    }
    leaves.appendMarker(0x60, count: string.utf16.count)
    for unit in string.utf16 {
      leaves.append(UInt8(truncatingIfNeeded: unit >> 8))
      leaves.append(UInt8(truncatingIfNeeded: unit))
    }
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

  /// Puts the containers between the leaves, and adds header, offset table and trailer.
  private mutating func serialized() -> [UInt8] {
    let referenceSize = Self.width(for: offsets.count)
    var output: [UInt8] = []
    output.reserveCapacity(
      48 + leaves.count + largeBytes + containers.count * 6 + references.count * referenceSize
        + offsets.count * 4)
    output.append(contentsOf: "bplist00".utf8)
    var (nextObject, nextReference) = (0, 0)
    var rest = Rest(of: self)
    for container in containers {
      let leafEnd = offsets[container.number]
      let shift = output.count - rest.done
      while nextObject <= container.number {
        offsets[nextObject] += shift
        nextObject += 1
      }
      rest.move(upTo: leafEnd, to: &output)
      let end = nextReference + output.appendMarker(of: container.value)
      while nextReference < end {
        output.appendBigEndian(UInt64(references[nextReference]), width: referenceSize)
        nextReference += 1
      }
    }
    let shift = output.count - rest.done
    for object in nextObject..<offsets.count { offsets[object] += shift }
    rest.move(upTo: leaves.count + largeBytes, to: &output)
    let tableOffset = output.count
    let offsetSize = Self.width(for: tableOffset)
    for place in offsets { output.appendBigEndian(UInt64(place), width: offsetSize) }
    output.appendBigEndian(UInt64(offsetSize) << 8 | UInt64(referenceSize))
    output.appendBigEndian(UInt64(offsets.count))
    output.appendBigEndian(0)
    output.appendBigEndian(UInt64(tableOffset))
    return output
  }

  /// The leaves that are not in the output yet.
  private struct Rest {
    private let leaves: [UInt8]
    private let large: [Large]
    private var nextLeaf = 0
    private var nextLarge = 0
    /// The bytes of the leaves in the output, large data included.
    private(set) var done = 0

    init(of writer: BinaryPropertyListWriter) {
      leaves = writer.leaves
      large = writer.large
    }

    mutating func move(upTo end: Int, to output: inout [UInt8]) {
      while nextLarge < large.count, done + large[nextLarge].place - nextLeaf < end {
        let (data, place) = (large[nextLarge].data, large[nextLarge].place)
        output.append(contentsOf: leaves[nextLeaf..<place])
        data.withUnsafeBytes { output.append(contentsOf: $0) }
        done += place - nextLeaf + data.count
        nextLeaf = place
        nextLarge += 1
      }
      guard done < end else { return }
      output.append(contentsOf: leaves[nextLeaf..<nextLeaf + end - done])
      nextLeaf += end - done
      done = end
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
    if width == 1 { return append(UInt8(truncatingIfNeeded: number)) }
    var shift = UInt64(width) * 8
    while shift > 0 {
      shift -= 8
      append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }

  /// Appends all eight bytes, most significant byte first.
  mutating func appendBigEndian(_ number: UInt64) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }

  /// Writes 1, 2 and 4 bytes unsigned and 8 bytes signed, so a negative number always takes 8.
  fileprivate mutating func appendInteger(_ integer: Int64) {
    let bits = UInt64(bitPattern: integer)
    let exponent: UInt8 =
      switch bits {
      case ...0xFF: 0
      case ...0xFFFF: 1
      case ...0xFFFF_FFFF: 2
      default: 3
      }
    append(0x10 | exponent)
    appendBigEndian(bits, width: 1 << Int(exponent))
  }

  fileprivate mutating func appendMarker(_ marker: UInt8, count: Int) {
    if count < 15 {
      append(marker | UInt8(count))
    } else {
      append(marker | 0x0F)
      appendInteger(Int64(count))
    }
  }

  /// - Returns: The number of references that follow.
  fileprivate mutating func appendMarker(of container: PropertyListValue) -> Int {
    switch container {
    case .array(let array):
      appendMarker(0xA0, count: array.count)
      return array.count
    case .dictionary(let dictionary):
      appendMarker(0xD0, count: dictionary.count)
      return 2 * dictionary.count
    default: return 0
    }
  }
}

extension String {
  /// The first eight bytes of UTF-8, as a number of the same order; zeros follow a shorter string.
  fileprivate var prefixInUTF8: UInt64 {
    let prefix = utf8.withContiguousStorageIfAvailable { bytes in
      var prefix: UInt64 = 0
      for index in 0..<Swift.min(bytes.count, 8) {
        prefix |= UInt64(bytes[index]) << UInt64(56 - 8 * index)
      }
      return prefix
    }
    return prefix ?? 0
  }

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
