package import Testing

/// A trait that runs each test of a suite twice: with containers that are directories, and with
/// containers on etcd. Where etcd is not installed, `TestEngine` says so, and the second run is left
/// out.
package struct BothEngines: SuiteTrait, TestTrait, TestScoping {
  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await function()
    let isForBoth = !test.traits.contains { $0 is OnlyDirectories }
    guard isForBoth, TestEngine.available.contains(.etcd) else { return }
    let handler = IssueHandlingTrait.compactMapIssues { issue in
      var issue = issue
      issue.comments.append("on etcd")
      return issue
    }
    try await handler.provideScope(for: test, testCase: testCase) {
      try await TestEngine.$current.withValue(.etcd) { try await function() }
    }
  }
}

/// A mark of tests that look at the files of a directory, or need what only a directory does; it has
/// the reason for people.
package struct OnlyDirectories: SuiteTrait, TestTrait {
  package var isRecursive: Bool { true }
  package let reason: String
}

extension Trait where Self == BothEngines {
  /// Runs each test on a directory and on etcd: see `BothEngines`.
  package static var bothEngines: Self { BothEngines() }
}

extension Trait where Self == OnlyDirectories {
  /// Leaves the run on etcd out.
  package static func onlyDirectories(_ reason: String) -> Self { OnlyDirectories(reason: reason) }
}
