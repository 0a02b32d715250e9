/// Property lists that no program should have to read, and files that are not property lists.
///
/// The four hostile ones crash or hang Foundation's readers, or make them use gigabytes.
enum HostileFiles {
  static let all: [(name: String, bytes: [UInt8])] = [
    ("truncated", Array(small.prefix(small.count - 9))),
    ("empty", []),
    ("garbage", Array("not a property list".utf8)),
    ("66 KB of nested arrays", nestedArrays(9_500)),
    ("98 bytes holding a set", set),
    ("shared references", sharedReferences),
    ("231 KB that inflate to gigabytes", inflating),
  ]

  /// The number 1 in the binary format: marker 0x10, one byte.
  private static let small = binary([[0x10, 1]])

  private static func nestedArrays(_ depth: Int) -> [UInt8] {
    Array(
      ("<?xml version=\"1.0\"?><plist>" + String(repeating: "<array>", count: depth)
        + "</plist>").utf8)
  }

  /// Marker 0xC: a set, which property lists of this kind never hold.
  private static let set = binary([
    [0xC1, 0, 1], [0x5F, 0x10, 40] + [UInt8](repeating: 0x61, count: 40),
  ])

  /// Thirty arrays, each of which holds the next one eight times: 8^29 leaves.
  private static let sharedReferences = binary(
    (0..<30).map { level in
      [0xA8]
        + (0..<8).flatMap { _ in [UInt8(0), UInt8(level + 1)] }
    } + [[0x10, 1]])

  /// 65,535 references to one string of 98 KB: 6.4 GB if each becomes a separate string.
  private static let inflating = binary([
    [0xAF, 0x12, 0, 0, 0xFF, 0xFF] + (0..<65_535).flatMap { _ in [UInt8(0), 1] },
    [0x5F, 0x12, 0, 1, 0x80, 0] + [UInt8](repeating: 0x61, count: 98_304),
  ])

  /// Returns a binary property list, version 00, of objects whose references have two bytes.
  private static func binary(_ objects: [[UInt8]]) -> [UInt8] {
    var bytes = Array("bplist00".utf8)
    var offsets: [Int] = []
    for object in objects {
      offsets.append(bytes.count)
      bytes += object
    }
    let table = bytes.count
    for offset in offsets { bytes += bigEndian(offset, 4) }
    // The trailer: five bytes unused, sort version, sizes of offsets and references, three numbers.
    bytes += [0, 0, 0, 0, 0, 0, 4, 2]
    bytes += bigEndian(objects.count, 8) + bigEndian(0, 8) + bigEndian(table, 8)
    return bytes
  }

  private static func bigEndian(_ number: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
  }
}
