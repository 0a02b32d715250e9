/// SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number generators", 2014): the
/// same choices again for the same seed.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return mix(state)
  }

  package mutating func chance(_ percent: Int) -> Bool {
    Int.random(in: 0..<100, using: &self) < percent
  }

  /// Returns one of several things, of which there is at least one.
  package mutating func pick<Element>(_ all: [Element]) -> Element {
    all[Int.random(in: 0..<all.count, using: &self)]
  }

  package mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration {
    .milliseconds(Int.random(in: range, using: &self))
  }
}

/// The finalizer of SplitMix64: spreads a number over all 64 bits.
package func mix(_ number: UInt64) -> UInt64 {
  var mixed = number
  mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
  mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
  return mixed ^ (mixed >> 31)
}
