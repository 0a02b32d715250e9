import FoundationEssentials

/// Writes `bplist00` as Apple's CFBinaryPList.c lays it out: header, objects, offset table, trailer.
///
/// Equal values become equal bytes: objects are written in breadth-first order, and keys are sorted
/// by their UTF-8 bytes. Nothing recurses. The writer already refuses a value that is nested too
/// deeply for our own reader.
///
/// The bytes of each object are written as soon as it is reached; a container leaves room for its
/// references, which become known when its elements are reached. Their width depends on the total
/// number of objects, so the writer begins with one byte, and starts over with more if needed.
struct BinaryPropertyListWriter: ~Copyable {
  private struct Container {
    let value: PropertyListValue
    /// Where its references begin. A dictionary lists its keys first, then its values.
    let place: Int
  }

  /// An entry of a dictionary, kept small so that sorting is fast.
  private struct Entry {
    let prefix: UInt64
    let index: Dictionary<String, PropertyListValue>.Index
  }

  private var output: ByteBuffer
  /// The place of each object.
  private var offsets: [Int] = []
  /// The containers in the order of their numbers.
  private var containers: [Container] = []
  /// The numbers of strings.
  private var strings = StringNumbers()
  private let spellsNullWide: Bool
  private let limits: PropertyListLimits?
  private var writesReferences: Bool { limits?.admitsReferences ?? false }
  /// The number of bytes of a reference, and the largest number of objects for it.
  private let (width, mostObjects): (Int, Int)
  private var referenceCount = 0
  /// The bytes of strings and data; each reference to a string counts.
  private var contentBytes = 0

  /// Below this number of nodes, looking for equal strings costs more than it saves.
  private static let leastObjectsToUnique = 32
  /// Longer strings are rarely equal, and hashing them takes time.
  private static let longestStringToUnique = 256

  /// - Parameter spellsNullWide: Whether the string "$null" is written in UTF-16. In ASCII it is
  ///   the spelling that `PropertyListEncoder` uses for `nil`, and the decoder reads it as `nil`.
  static func bytes(
    of value: PropertyListValue, spellsNullWide: Bool = false, limits: PropertyListLimits? = nil
  ) throws(PropertyListError) -> [UInt8] {
    var width = 1
    while true {
      var writer = BinaryPropertyListWriter(width, spellsNullWide: spellsNullWide, limits: limits)
      if try writer.flatten(value) { return try writer.finished() }
      precondition(width < 4, "a property list has at most 2^32 - 1 objects")
      width *= 2
    }
  }

  private init(_ width: Int, spellsNullWide: Bool, limits: PropertyListLimits?) {
    self.spellsNullWide = spellsNullWide
    self.limits = limits
    self.width = width
    // Foundation requires room for the count itself when it reads.
    mostObjects = 1 << (8 * width) - 1
    output = ByteBuffer(capacity: 512)
    output.append(bigEndian: BinaryPropertyListDocument.magic)
    offsets.reserveCapacity(16)
  }

  /// Writes every object, in breadth-first order.
  ///
  /// - Returns: False if there are too many for references of this width.
  private mutating func flatten(_ root: PropertyListValue) throws(PropertyListError) -> Bool {
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
      var place = containers[index].place
      switch containers[index].value {
      case .array(let array):
        if let limits, referenceCount + array.count >= limits.maximumNodes {
          throw .tooManyNodes(limits.maximumNodes)
        }
        makeRoom(for: array)
        for element in array {
          try reference(element, at: &place)
          if offsets.count > mostObjects { return false }
        }
      case .dictionary(let dictionary):
        // The keys alone are as many objects.
        if dictionary.count > mostObjects { return false }
        try flatten(dictionary, at: &place)
      default: break
      }
      if offsets.count > mostObjects { return false }
      index += 1
    }
    return true
  }

  private mutating func flatten(
    _ dictionary: [String: PropertyListValue], at place: inout Int
  ) throws(PropertyListError) {
    var entries: [Entry] = []
    entries.reserveCapacity(dictionary.count)
    for index in dictionary.indices {
      entries.append(Entry(prefix: dictionary[index].key.prefixInUTF8, index: index))
    }
    if entries.count > 1 {
      // First by numbers alone, which is fast.
      entries.sort { $0.prefix < $1.prefix }
      var start = 0
      while start < entries.count {
        let rest = entries[start...]
        let end = rest.firstIndex { $0.prefix != entries[start].prefix } ?? entries.count
        if end - start > 1 {
          entries[start..<end].sort {
            dictionary[$0.index].key.precedesInUTF8(dictionary[$1.index].key)
          }
        }
        start = end
      }
    }
    if entries.count > Self.leastObjectsToUnique { strings.reserve(2 * entries.count) }
    makeRoom(for: dictionary.values)
    for entry in entries { referenceKey(dictionary[entry.index].key, at: &place) }
    for entry in entries { try reference(dictionary[entry.index].value, at: &place) }
  }

  /// A key is never `nil`, so one that reads "$null" is always written in UTF-16.
  private mutating func referenceKey(_ key: String, at place: inout Int) {
    guard key == "$null" else { return reference(string: key, at: &place) }
    put(reference: offsets.count, at: &place)
    add(key, wide: true)
  }

  private mutating func reference(
    _ value: PropertyListValue, at place: inout Int
  ) throws(PropertyListError) {
    if case .string(let string) = value { return reference(string: string, at: &place) }
    put(reference: offsets.count, at: &place)
    try add(value)
  }

  private mutating func reference(string: String, at place: inout Int) {
    let next = offsets.count
    let number = number(of: string, orNew: next)
    put(reference: number, at: &place)
    if number == next { add(string) } else { contentBytes += string.utf8.count }
  }

  /// Returns the number of an equal string, or registers the string under `new`.
  private mutating func number(of string: String, orNew new: Int) -> Int {
    guard new >= Self.leastObjectsToUnique, string.utf8.count <= Self.longestStringToUnique else {
      return new
    }
    return strings.number(of: string, orNew: new)
  }

  private mutating func put(reference number: Int, at place: inout Int) {
    referenceCount += 1
    output.put(UInt64(number), width: width, at: place)
    place += width
  }

  private mutating func add(_ string: String) {
    add(string, wide: spellsNullWide && string == "$null")
  }

  private mutating func add(_ value: PropertyListValue) throws(PropertyListError) {
    if case .string(let string) = value { return add(string) }
    offsets.append(output.count)
    if writesReferences, let number = value.archiveReference {
      output.append(0x83)
      output.append(UInt64(number), width: 4)
      return
    }
    switch value {
    case .array(let array): leaveRoom(in: value, marker: 0xA0, array.count, references: array.count)
    case .dictionary(let dictionary):
      leaveRoom(in: value, marker: 0xD0, dictionary.count, references: 2 * dictionary.count)
    case .string: break
    case .integer(let integer): output.appendInteger(integer)
    case .unsigned(let integer):
      if let signed = Int64(exactly: integer) { return output.appendInteger(signed) }
      // 16 bytes, because 8 bytes with the high bit set mean a negative number.
      output.append(0x14)
      output.append(bigEndian: UInt64(0))
      output.append(bigEndian: integer)
    case .real(let real):
      output.append(0x23)
      output.append(bigEndian: real.bitPattern)
    case .boolean(let boolean): output.append(boolean ? 0x09 : 0x08)
    case .date(let date):
      try Self.checkFinite(date)
      output.append(0x33)
      output.append(bigEndian: date.timeIntervalSinceReferenceDate.bitPattern)
    case .data(let data):
      contentBytes += data.count
      output.appendMarker(0x40, count: data.count)
      data.withUnsafeBytes { output.append($0) }
    }
  }

  /// Makes room for the data of a container.
  private mutating func makeRoom(for values: some Collection<PropertyListValue>) {
    var bytes = 0
    for case .data(let data) in values { bytes += data.count }
    output.reserve(bytes)
  }

  private mutating func leaveRoom(
    in value: PropertyListValue, marker: UInt8, _ count: Int, references: Int
  ) {
    output.appendMarker(marker, count: count)
    containers.append(Container(value: value, place: output.count))
    output.append(zeros: references * width)
  }

  private mutating func add(_ string: String, wide: Bool) {
    let utf8 = string.utf8
    contentBytes += utf8.count
    offsets.append(output.count)
    // Only ASCII has as many bytes as UTF-16 units; Swift knows both counts of an ASCII string.
    guard wide || utf8.count != string.utf16.count else {
      output.appendMarker(0x50, count: utf8.count)
      // The generic way uses an iterator.
      guard utf8.withContiguousStorageIfAvailable({ output.append($0) }) == nil else { return }
      return output.append(Array(utf8))
    }
    output.appendMarker(0x60, count: string.utf16.count)
    for unit in string.utf16 {
      output.append(UInt8(truncatingIfNeeded: unit >> 8))
      output.append(UInt8(truncatingIfNeeded: unit))
    }
  }

  private func checkDepth(_ depth: Int) throws(PropertyListError) {
    let deepest = PropertyListLimits.deepestNesting
    let maximum = min(limits?.maximumDepth ?? deepest, deepest)
    guard depth <= maximum else { throw .tooDeep(maximum) }
  }

  static func checkFinite(_ date: Date) throws(PropertyListError) {
    guard date.timeIntervalSinceReferenceDate.isFinite else {
      throw PropertyListError(.unrepresentable, "it holds a date that is not a point in time")
    }
  }

  /// Adds the offset table and the trailer.
  private mutating func finished() throws(PropertyListError) -> [UInt8] {
    output.appendTable(of: offsets, referenceSize: width)
    let bytes = output.bytes
    if let limits { try check(bytes, limits) }
    return bytes
  }

  /// Refuses values that a reader with these limits would refuse. The counts are upper bounds: a
  /// string of n bytes in UTF-8 costs a reader at most 3 n. Only a file near a limit is scanned.
  private func check(
    _ bytes: [UInt8], _ limits: PropertyListLimits
  ) throws(PropertyListError) {
    let nodes = referenceCount + 1
    let expandedBytes = 3 * contentBytes + nodes * PropertyListLimits.bytesPerNode
    guard
      bytes.count > limits.maximumBytes || nodes > limits.maximumNodes
        || expandedBytes > limits.maximumExpandedBytes
    else { return }
    try BinaryPropertyListScan.check(bytes, limits: limits)
  }
}

/// The numbers of strings by their bytes: composed and decomposed letters differ.
///
/// The standard library's hashing withstands strings chosen to be slow, and takes most of the time
/// of writing a large dictionary. Here a string that meets too many others is written again.
private struct StringNumbers {
  private var entries: [(hash: UInt, text: String, number: Int)] = []
  /// For each hash, an entry's index and one more; 0 for none. Their count is a power of two.
  private var slots: [UInt32] = []

  private static let mostProbes = 16

  /// Makes room for more strings at once.
  mutating func reserve(_ more: Int) {
    let wanted = 2 * (entries.count + more)
    guard wanted > slots.count else { return }
    slots = [UInt32](repeating: 0, count: 1 << (Int.bitWidth - wanted.leadingZeroBitCount))
    entries.reserveCapacity(slots.count / 2)
    let mask = UInt(slots.count - 1)
    for (index, entry) in entries.enumerated() {
      var place = entry.hash & mask
      while slots[Int(place)] > 0 { place = (place + 1) & mask }
      slots[Int(place)] = UInt32(index + 1)
    }
  }

  /// Returns the number of an equal string, or registers the string under `new`.
  mutating func number(of text: String, orNew new: Int) -> Int {
    reserve(1)
    let hash = Self.hash(text)
    let mask = UInt(slots.count - 1)
    for probe in 0..<Self.mostProbes {
      let place = Int((hash &+ UInt(probe)) & mask)
      guard slots[place] > 0 else {
        entries.append((hash, text, new))
        slots[place] = UInt32(entries.count)
        return new
      }
      let index = Int(slots[place]) - 1
      if entries[index].hash == hash, entries[index].text.hasSameBytes(as: text) {
        return entries[index].number
      }
    }
    return new
  }

  private static func hash(_ text: String) -> UInt {
    var text = text
    return text.withUTF8 { bytes in
      var hash = UInt(bytes.count)
      for byte in bytes { hash = (hash ^ UInt(byte)) &* 0x100_0000_01B3 }
      return hash ^ hash >> 29
    }
  }
}

extension ByteBuffer {
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
    append(bits, width: 1 << Int(exponent))
  }

  fileprivate mutating func appendMarker(_ marker: UInt8, count: Int) {
    if count < 15 {
      append(marker | UInt8(count))
    } else {
      append(marker | 0x0F)
      appendInteger(Int64(count))
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
}
