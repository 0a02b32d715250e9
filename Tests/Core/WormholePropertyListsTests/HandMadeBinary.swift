/// A binary property list that is built byte by byte, for files that no writer would write.
struct HandMadeBinary {
  private(set) var objects: [[UInt8]] = []
  /// The places of the strings among the objects.
  private(set) var strings: [Int] = []
  var top = 0
  var offsetSize = 4
  var referenceSize = 2
  /// Replacements for parts of the finished trailer: an offset from its start, and bytes.
  var trailerPatches: [(Int, [UInt8])] = []

  @discardableResult
  mutating func add(_ bytes: [UInt8]) -> Int {
    if let marker = bytes.first, [0x50, 0x60].contains(marker & 0xF0) {
      strings.append(objects.count)
    }
    objects.append(bytes)
    return objects.count - 1
  }

  @discardableResult
  mutating func string(_ text: String) -> Int {
    add(Self.head(0x50, count: text.utf8.count) + Array(text.utf8))
  }

  @discardableResult
  mutating func utf16String(_ units: [UInt16]) -> Int {
    add(Self.head(0x60, count: units.count) + units.flatMap { Self.bigEndian(Int($0), 2) })
  }

  /// Adds an array, set or dictionary of references; a dictionary has half as many elements.
  @discardableResult
  mutating func container(_ marker: UInt8, _ references: [Int]) -> Int {
    let count = marker == 0xD0 ? references.count / 2 : references.count
    return add(
      Self.head(marker, count: count) + references.flatMap { Self.bigEndian($0, referenceSize) })
  }

  static func head(_ marker: UInt8, count: Int) -> [UInt8] {
    count < 15 ? [marker | UInt8(count)] : [marker | 0x0F, 0x12] + bigEndian(count, 4)
  }

  static func bigEndian(_ number: Int, _ width: Int) -> [UInt8] {
    (0..<width).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  func bytes() -> [UInt8] {
    var file = Array("bplist00".utf8)
    var offsets: [Int] = []
    for object in objects {
      offsets.append(file.count)
      file += object
    }
    let table = file.count
    for offset in offsets { file += Self.bigEndian(offset, offsetSize) }
    var trailer = [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    trailer += Self.bigEndian(objects.count, 8) + Self.bigEndian(top, 8) + Self.bigEndian(table, 8)
    for (offset, patch) in trailerPatches {
      trailer.replaceSubrange(offset..<(offset + patch.count), with: patch)
    }
    return file + trailer
  }
}
