import WormholeSystem

/// A compiler that a test runs.
package enum CompilerRun {
  /// When a test ends a compiler that hangs: an hour from now.
  ///
  /// How long a compiler takes depends on what else runs: 5 seconds on a quiet machine were more than 120
  /// beside twenty other compilers. The bound of the whole test run is for a hang.
  package static var deadline: ContinuousClock.Instant { .now + .seconds(3_600) }

  /// The environment of a compiler: it leaves temporary files, and here they go with the test's.
  package static func environment(leavingFilesIn directory: String) -> [String] {
    Program.environment(with: ["TMPDIR=\(directory)"])
  }
}
