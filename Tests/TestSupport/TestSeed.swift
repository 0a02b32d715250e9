import SystemCalls

/// The seed of a random test; it is printed, and replayed with the environment variable that it
/// names.
package struct TestSeed: CustomStringConvertible, Sendable {
  package let variable: String
  package let value: UInt64

  /// Returns the seed in an environment variable, otherwise a new one.
  package static func next(_ variable: String) -> TestSeed {
    let given = Program.environment(variable).flatMap { UInt64($0) }
    let seed = TestSeed(variable: variable, value: given ?? .random(in: .min ... .max))
    print("replay with \(seed)")
    return seed
  }

  package var description: String { "\(variable)=\(value)" }
  package var generator: SeededGenerator { SeededGenerator(seed: value) }
}

/// A small generator that returns the same numbers for the same seed (SplitMix64; Steele, Lea,
/// Flood, OOPSLA 2014).
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
