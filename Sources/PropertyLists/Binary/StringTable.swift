/// Finds strings that were seen before, byte for byte.
///
/// Not a `Dictionary<String, _>`, for which composed and decomposed letters are one key. A chain of
/// probes ends after a few steps: then an equal string is simply written twice, and nobody can slow
/// a writer down with strings that collide.
struct StringTable {
  private struct Entry {
    var string: String
    var number: UInt32
    var hash: UInt64
  }

  private var slots: [Int32] = []
  private var entries: [Entry] = []

  private static let probes = 8
  /// Longer strings are rarely equal and cost time to hash.
  private static let longestString = 256

  /// The number of an equal string; `new`, from now on, for one not seen before.
  mutating func number(of string: String, orNew new: UInt32) -> UInt32 {
    guard string.utf8.count <= Self.longestString else { return new }
    if entries.count * 2 >= slots.count { grow() }
    let hash = Self.hash(string)
    for probe in 0..<Self.probes {
      let slot = (Int(truncatingIfNeeded: hash) &+ probe) & (slots.count - 1)
      guard slots[slot] >= 0 else {
        slots[slot] = Int32(entries.count)
        entries.append(Entry(string: string, number: new, hash: hash))
        return new
      }
      let entry = entries[Int(slots[slot])]
      if entry.hash == hash, entry.string.utf8.elementsEqual(string.utf8) { return entry.number }
    }
    return new
  }

  private mutating func grow() {
    slots = Array(repeating: -1, count: max(64, slots.count * 2))
    for (index, entry) in entries.enumerated() {
      for probe in 0..<Self.probes {
        let slot = (Int(truncatingIfNeeded: entry.hash) &+ probe) & (slots.count - 1)
        guard slots[slot] >= 0 else {
          slots[slot] = Int32(index)
          break
        }
      }
    }
  }

  /// FNV-1a, unseeded, because the bytes that are written must not depend on the process.
  private static func hash(_ string: String) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in string.utf8 {
      hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
    }
    return hash ^ (hash >> 29)
  }
}
