import AppGroup
package import SystemCalls
package import Testing

/// Runs a test in a process of its own, which does nothing else: for what changes the whole process,
/// or ends it.
///
/// The library's own exit tests wait for any child of this process, and look at the first one that
/// has ended, until somebody reaps it: beside tests with children of their own they may wait for ever.
package struct OwnProcess: TestTrait, TestScoping {
  let end: Termination

  private static let variable = "WORMHOLE_TEST_ALONE"
  private static var isAlone: Bool { Program.environment(variable) != nil }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    guard !Self.isAlone else { return try await function() }
    let name = "\(test.id)"
    let (found, output) = try await Blocking.run { try Self.run(name) }
    #expect(found == end, "\(output)", sourceLocation: test.sourceLocation)
  }

  /// Starts the program that runs this test once more, for this test only.
  private static func run(_ name: String) throws -> (Termination?, String) {
    let pattern = "^" + name.map { $0.isLetter || $0.isNumber ? "\($0)" : "\\\($0)" }.joined() + "$"
    let null = try FileDescriptor.open("/dev/null", .readOnly)
    let pipe = try makePipe()
    let child = try ChildProcess(
      Program.executablePath(),
      ["--testing-library", "swift-testing", "--filter", pattern],
      environment: Program.environment + ["\(variable)=1"],
      input: null.rawValue, output: pipe.write.rawValue, errors: pipe.write.rawValue)
    let reader = pipe.takeRead()
    let output = try reader.descriptor.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
    return (
      try child.wait(until: .now + .seconds(60)), String(decoding: output, as: UTF8.self)
    )
  }
}

extension Trait where Self == OwnProcess {
  /// The test has a process of its own, which succeeds.
  package static var ownProcess: Self { OwnProcess(end: .exited(0)) }

  /// The test has a process of its own, and ends it.
  package static func ownProcess(_ end: Termination) -> Self { OwnProcess(end: end) }
}
