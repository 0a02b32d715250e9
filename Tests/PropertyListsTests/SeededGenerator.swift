import Foundation

/// SplitMix64 (Steele, Lea, Flood 2014): one number says everything about a run.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// The seed of a random test: a new one, or the one in PLIST_SEED to see the same run again.
func printedSeed(for test: String) -> UInt64 {
  let given = ProcessInfo.processInfo.environment["PLIST_SEED"].flatMap { UInt64($0) }
  let seed = given ?? UInt64.random(in: 0...UInt64.max)
  print("\(test): PLIST_SEED=\(seed)")
  return seed
}
