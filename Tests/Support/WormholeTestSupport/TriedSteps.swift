import Testing
import WormholeSystem

/// The steps of a command that a test tries with kills and stops: each eighth, from a start that
/// differs in each run; all of them with EVERY_STEP in the environment.
package enum TriedSteps {
  /// One of so many steps is tried.
  package static let sample = 8
  package static let isThorough = Program.environment("EVERY_STEP") != nil
  package static let stride = isThorough ? 1 : sample

  /// The first step; STEPS_FROM=2 sets it.
  package static let first: Int = {
    guard stride > 1 else { return 0 }
    return Int(start % UInt64(stride))
  }()
  private static let start = TestSeed.next("STEPS_FROM").value

  /// Which of so many steps a test tries, at most so many of them, evenly spread from a random start;
  /// all of them with EVERY_STEP.
  package static func of(_ steps: Int, atMost limit: Int) -> StrideTo<Int> {
    guard stride > 1 else { return Swift.stride(from: 0, to: steps, by: 1) }
    let length = max(stride, (steps + limit - 1) / limit)
    return Swift.stride(from: Int(start % UInt64(length)), to: steps, by: length)
  }

  /// The shares of the steps among tests that run in parallel: one of them, or all.
  package static let shares = stride > 1 ? [first] : Array(0..<sample)

  /// Tries one step after the other, until a command was done before it was killed or stopped there.
  ///
  /// - Parameters:
  ///   - limit: The command has more steps than this.
  ///   - attempt: Returns whether the command came to the step.
  package static func each(
    from first: Int = first, by stride: Int = stride, moreThan limit: Int = -1,
    _ attempt: (_ step: Int) throws -> Bool
  ) throws {
    var step = first
    while try attempt(step) { step += stride }
    #expect(step > limit)
  }

  /// Tries the steps of one share of all, or of all after the first ones.
  package static func each(
    of share: Int, after begin: Int = 0, moreThan limit: Int,
    _ attempt: (_ step: Int) throws -> Bool
  ) throws {
    try each(from: begin + share, by: sample, moreThan: limit, attempt)
  }
}
