#if DEBUG
  import AppGroup
  import PropertyLists
  import SystemCalls
  import TestScopes
  import TestSupport
  import Testing

  @testable import Containers

  /// What the loss of power has left: a name without its content, and the version that stands in for it.
  @Suite("A kept version", .blocking)
  struct KeptVersionTests {
    private let directory: TemporaryDirectory
    private let value: Value

    init() throws {
      directory = try TemporaryDirectory()
      value = try directory.container().value("k")
      try value.replace(with: 1)
    }

    private var lease: String { directory.path + "/values/k/lease/" }

    private func loseLast() throws {
      try value.replace(with: 1)
      let own = try #require(KeptVersion.name)
      try rename(
        lease + own, at: Directory.current, to: lease + "kept-earlier", at: Directory.current)
      try FileDescriptor.open(directory.path + "/values/k/value.plist", [.writeOnly, .truncate])
        .synchronize()
    }

    private func kept() throws -> [String] {
      try FileDescriptor.open(lease, [.readOnly, .directory]).entries().map(\.name.text)
        .filter { $0.hasPrefix(KeptVersion.prefix) }
    }

    @Test("of an earlier start is read, also while the first publication removes it")
    func readMeanwhile() throws {
      try loseLast()
      #expect(try value.read() == 1)
      let counting = Faults.Plan { _, _ in .proceed }
      _ = try Faults.$plan.withValue(counting) { try value.read() }
      for place in 0..<counting.calls {
        try loseLast()
        let value = value
        let plan = Faults.Plan { _, index in
          guard index == place else { return .proceed }
          return Faults.$plan.withValue(nil) {
            do { try value.replace(with: 2) } catch {
              Issue.record("before call \(place): \(error)")
            }
            return .proceed
          }
        }
        try Faults.$plan.withValue(plan) {
          let found = try value.read()
          #expect(found == 1 || found == 2, "published before call \(place)")
        }
      }
    }

    @Test("of this start stays, although a late holder removes that of an earlier one")
    func lateHolder() throws {
      let own = try #require(KeptVersion.name)
      try loseLast()
      let counting = try Participant(directory.path)
      let calls = try #require(Int(try counting.ask("calls set k 2")))
      try counting.end()
      for place in stride(from: TriedSteps.first, to: calls, by: TriedSteps.stride) {
        try loseLast()
        let late = try Participant(directory.path)
        try late.tell("stop \(place) set k 3")
        try late.waitUntilStopped()
        try value.replace(with: 4)
        let before = try kept()
        try late.send(.continue)
        _ = try late.answer()
        try late.end()
        #expect(try !before.contains(own) || kept().contains(own), "stopped before call \(place)")
        #expect(try [3, 4].contains(value.read()))
      }
    }
  }
#endif
