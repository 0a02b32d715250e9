import WormholeSystem
import WormholeToolkit

/// A compiler that a test runs.
package enum CompilerRun {
  package struct Outcome: Sendable {
    /// Whether it ended with status 0.
    package let isBuilt: Bool
    /// What it printed.
    package let said: String
  }

  /// When a test ends a compiler that hangs: an hour from now.
  ///
  /// How long a compiler takes depends on what else runs: 5 seconds on a quiet machine were more than 120
  /// beside twenty other compilers. The bound of the whole test run is for a hang.
  package static var deadline: ContinuousClock.Instant { .now + .seconds(3_600) }

  /// The environment of a compiler: it leaves temporary files, and here they go with the test's.
  package static func environment(leavingFilesIn directory: String) -> [String] {
    Program.environment(with: ["TMPDIR=\(directory)"])
  }

  /// Runs a compiler to its end.
  ///
  /// - Parameters:
  ///   - words: Its name or path, and its arguments.
  ///   - directory: The place of its temporary files.
  ///   - environment: Variables that it gets besides this process's.
  /// - Throws: `Errno`, if it cannot be started. What it finds wrong is in the outcome.
  package static func run(
    _ words: [String], in directory: String, environment: [String] = []
  ) throws -> Outcome {
    let pipe = try makePipe()
    let compiler = try ChildProcess(
      "timeout", ["3600"] + words,
      environment: Program.environment(with: environment + ["TMPDIR=\(directory)"]),
      output: pipe.write.rawValue, errors: pipe.write.rawValue)
    let reader = pipe.takeRead()
    let said = try reader.descriptor.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
    let end = try compiler.wait(until: deadline)
    return Outcome(isBuilt: end == .exited(0), said: String(decoding: said, as: UTF8.self))
  }
}
