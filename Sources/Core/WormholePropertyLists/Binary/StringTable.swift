/// A table that finds equal strings, compared byte for byte.
///
/// A `Dictionary<String, _>` would not do, because it treats composed and decomposed letters as one
/// key. Probing gives up after a few steps, and an equal string is then simply written twice. So
/// strings that were chosen to collide cannot slow a writer down.
struct StringTable {
  private struct Entry {
    var string: String
    var number: Int
    var hash: UInt64
  }

  private var slots: [Int32] = []
  private var entries: [Entry] = []

  private static let probes = 8
  /// Longer strings are rarely equal, and hashing them takes time.
  private static let longestString = 256

  /// Returns the number of an equal string, or registers the string under `new`.
  mutating func number(of string: String, orNew new: Int) -> Int {
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

  /// FNV-1a without a seed, because the output must not depend on the process.
  private static func hash(_ string: String) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in string.utf8 {
      hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
    }
    return hash ^ (hash >> 29)
  }
}
