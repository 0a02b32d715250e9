package import Testing
import Wormhole
import WormholeSystem
package import WormholeToolkit

/// A trait that runs a test in its own process, for tests that change or end the whole process.
///
/// The library's own exit tests wait for any child of this process, and examine the first one that
/// has ended until it is reaped. Beside tests with their own children they may wait for ever.
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

  /// Starts the program of this test run once more, for this test only.
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
    let deadline = ContinuousClock.now + .seconds(60)
    var output: [UInt8] = []
    // To the end of its output, not to its own: it could not end while the pipe is full.
    while true {
      guard try waitReadable([reader.descriptor.rawValue], until: deadline)[0] else {
        try child.send(.kill)
        break
      }
      let bytes = try Program.read(from: reader.descriptor.rawValue, maximumBytes: 65_536)
      if bytes.isEmpty { break }
      output += bytes
    }
    return (try child.wait(until: deadline + .seconds(10)), String(decoding: output, as: UTF8.self))
  }
}

extension Trait where Self == OwnProcess {
  /// Runs the test in its own process, which must succeed.
  package static var ownProcess: Self { OwnProcess(end: .exited(0)) }

  /// Runs the test in its own process, which the test ends.
  package static func ownProcess(_ end: Termination) -> Self { OwnProcess(end: end) }
}
