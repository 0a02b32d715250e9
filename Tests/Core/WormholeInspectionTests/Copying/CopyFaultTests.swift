#if DEBUG
  import Foundation
  import Testing
  import WormholeSystem
  import WormholeTestSupport

  @testable import Wormhole
  @testable import WormholeInspection

  @Suite("A copy that meets an error of the kernel", .blocking)
  struct CopyFaultTests {
    private let directory: TemporaryDirectory
    private let container: SharedContainer

    init() throws {
      directory = try TemporaryDirectory()
      try makeDirectory(directory.path + "/of")
      container = try SharedContainer(path: directory.path + "/of")
      for name in ["v", String(repeating: "long/", count: 100)] {
        try container.value(name).replace(with: 1)
        try container.queue(name).sender("s").enqueue(2)
        try container.log(name).append(3)
      }
      try container.notification("n").setState(4)
      let consumer = try container.queue("taken").work(until: soon)
      try container.queue("taken").sender("s").enqueue(5)
      _ = try consumer.next(until: soon)
    }

    private func copy(_ plan: Faults.Plan) throws -> [String] {
      let place = directory.path + "/copies/copy"
      // After an error there is no copy to remove.
      defer { try? FileManager.default.removeItem(atPath: place) }
      try Faults.$plan.withValue(plan) {
        var copy = ContainerCopy(of: container)
        copy.allowsUse = true
        copy.isDurable = false
        _ = try copy.run(to: place, until: .now + .seconds(30))
      }
      return try FileManager.default.subpathsOfDirectory(atPath: place).sorted()
    }

    @Test(
      "at any step is complete, or not made; and the error names a file",
      arguments: [Errno.accessDenied, .tooManyOpenFiles, .noSpace])
    func atAnyStep(error: Errno) throws {
      let counting = Faults.Plan { _, _ in .proceed }
      let whole = try copy(counting)
      #expect(whole.count > 30)
      for place in TriedSteps.of(counting.calls, atMost: 100) {
        let plan = Faults.Plan { _, index in index == place ? .fail(error) : .proceed }
        do {
          #expect(try copy(plan) == whole, "call \(place)")
        } catch let error as AppGroupError {
          #expect(error.path.hasPrefix(directory.path), "call \(place): \(error)")
        } catch let error as TreeError {
          #expect(error.path.text.hasPrefix("copy.copying-"), "call \(place): \(error)")
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.path + "/copies")
        #expect(left == [], "call \(place)")
      }
    }

    // A list leaves it out, and so did a copy, which said that it was complete.
    @Test(
      "because a long name cannot be looked at is not made",
      .enabled(if: Program.effectiveUser != 0, "root may look at all"))
    func unreadableName() throws {
      let path = container.value(String(repeating: "long/", count: 100)).directory.path
      try setPermissions(FileName(path), at: Directory.current, 0)
      // So that it can be removed. If this fails, that does, too, and says so.
      defer { try? setPermissions(FileName(path), at: Directory.current, 0o700) }
      let error = #expect(throws: AppGroupError.self) {
        try copy(Faults.Plan { _, _ in .proceed })
      }
      #expect(error?.code == .permissionDenied)
    }
  }
#endif
