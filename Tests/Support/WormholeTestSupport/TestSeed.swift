import WormholeSystem
package import WormholeWorkshop

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
