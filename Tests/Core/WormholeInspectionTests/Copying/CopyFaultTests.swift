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

    private func copy(_ plan: Faults.Plan) throws -> (entries: [String], faults: [WormholeError]) {
      let place = directory.path + "/copies/copy"
      // After an error there is no copy to remove.
      defer { try? FileManager.default.removeItem(atPath: place) }
      let done = try Faults.$plan.withValue(plan) {
        var copy = ContainerCopy(of: container)
        copy.allowsUse = true
        copy.isDurable = false
        return try copy.run(to: place, until: .now + .seconds(30))
      }
      return (
        try FileManager.default.subpathsOfDirectory(atPath: place).sorted(), done.faults.all
      )
    }

    @Test(
      "at any step is complete, names what it leaves out, or is not made, and the error names a file",
      arguments: [Errno.accessDenied, .tooManyOpenFiles, .noSpace])
    func atAnyStep(error: Errno) throws {
      let counting = Faults.Plan { _, _ in .proceed }
      let whole = try copy(counting).entries
      #expect(whole.count > 30)
      for place in TriedSteps.of(counting.calls, atMost: 100) {
        let plan = Faults.Plan { _, index in index == place ? .fail(error) : .proceed }
        do {
          let (copied, faults) = try copy(plan)
          #expect(faults.isEmpty || error == .accessDenied, "call \(place): \(faults)")
          let missing = Set(whole).subtracting(copied).map { container.location + "/" + $0 }
          let explained = missing.filter { entry in
            faults.contains { entry.hasPrefix($0.path) || $0.path.hasPrefix(entry) }
          }
          #expect(
            Set(copied).isSubset(of: whole) && explained == missing, "call \(place): \(faults)")
        } catch let error as WormholeError {
          #expect(error.path.hasPrefix(directory.path), "call \(place): \(error)")
        } catch let error as TreeError {
          #expect(error.path.text.hasPrefix("copy.copying-"), "call \(place): \(error)")
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.path + "/copies")
        #expect(left == [], "call \(place)")
      }
    }

    @Test(
      "leaves out a long name that cannot be looked at, and says so",
      .enabled(if: Program.effectiveUser != 0, "root may look at all"))
    func unreadableName() throws {
      let path = container.value(String(repeating: "long/", count: 100)).directory.path
      try setPermissions(FileName(path), at: Directory.current, 0)
      // So that it can be removed. If this fails, that does, too, and says so.
      defer { try? setPermissions(FileName(path), at: Directory.current, 0o700) }
      let faults = try copy(Faults.Plan { _, _ in .proceed }).faults
      #expect(faults.map(\.path) == [path] && faults[0].code == .permissionDenied, "\(faults)")
    }
  }
#endif
