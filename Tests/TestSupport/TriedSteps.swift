import SystemCalls

/// Which of a command's steps a test of kills and stops tries: each third, from a place that is another
/// one in each run; all of them with EVERY_STEP in the environment.
package enum TriedSteps {
  package static let stride = Program.environment("EVERY_STEP") == nil ? 3 : 1

  /// The first one; STEPS_FROM=2 says which.
  package static let first: Int = {
    guard stride > 1 else { return 0 }
    return Int(TestSeed.next("STEPS_FROM").value % UInt64(stride))
  }()

  /// The steps shared out among tests that run beside each other: which of three.
  package static let shares = stride > 1 ? [first] : [0, 1, 2]
}
