import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A change", .blocking)
struct ChangeTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  @Test("may be read without a limit")
  func noLimit() throws {
    try container.value("k").replace(with: 1)
    #expect(try container.value("k").read(limits: .init(maximumBytes: .max)) == 1)
  }

  @Test("may be updated with a term that has always passed")
  func negativeTerm() throws {
    try container.value("k").update(term: .seconds(Int64.min)) { $0 = 1 }
  }

  @Test("reports its version only when it can publish")
  func preparedStamps() throws {
    let scene = try LeaseScene()
    let lease = try scene.acquire()
    let announced = Heard<Stamp>()
    #expect(throws: WormholeError.self) {
      try scene.value.replace(withBytes: [1], durability: .durable, until: .now) {
        announced.add($0)
      }
    }
    #expect(announced.all.isEmpty)
    lease.end()
  }

  @Test("is not repeated for an error of its body, not even for another change's lost lease")
  func nestedLoss() throws {
    let runs = Atomic(0)
    #expect(throws: WormholeError.self) {
      try container.value("k").update { _ in
        runs.add(1, ordering: .relaxed)
        if runs.load(ordering: .relaxed) < 3 {
          throw WormholeError(.leaseLost, "change another value", path: "", reason: "")
        }
      }
    }
    #expect(runs.load(ordering: .relaxed) == 1)
  }

  /// Removes the directory of "k" while a change of it prepares its content.
  private func removedWhilePreparing(_ change: () throws -> Void) throws {
    let path = directory.path + "/values/k"
    let made = Heard<Int>()
    let plan = Faults.Plan { call, _ in
      guard call == .mkdirat else { return .proceed }
      made.add(1)
      guard made.all.count == 3 else { return .proceed }
      return Faults.$plan.withValue(nil) {
        do throws(Errno) { try removeDirectory(path) } catch { Issue.record(error) }
        return .proceed
      }
    }
    try Faults.$plan.withValue(plan, operation: change)
  }

  @Test("succeeds although its directory is removed while its content is prepared")
  func removed() throws {
    try removedWhilePreparing {
      try container.value("k").replace(with: 1, durability: .durable)
    }
    #expect(try container.value("k").read() == 1)
  }

  @Test("that has no time left when its directory is removed has timed out")
  func removedLate() throws {
    try removedWhilePreparing {
      let error = #expect(throws: WormholeError.self) {
        try container.value("k").replace(
          with: 1, durability: .durable, until: .now - .seconds(1))
      }
      #expect(error?.code == .timedOut)
    }
    #expect(try container.value("k").read() == nil)
  }
}
