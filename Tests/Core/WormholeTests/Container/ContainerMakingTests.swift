import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A directory of a container, while it is made", .blocking)
struct ContainerMakingTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  @Test("reports why a long identifier has no directory, and leaves nothing behind")
  func longIdentifier() throws {
    let long = String(repeating: "x", count: 300)
    let plan = Faults.Plan { call, _ in call == .openat ? .fail(.noSpace) : .proceed }
    let error = #expect(throws: WormholeError.self) {
      try Faults.$plan.withValue(plan) { try container.value(long).replace(with: 1) }
    }
    #expect(error?.code == .noSpace)
    let left = try FileDescriptor.open(directory.path + "/values", .readOnly).entries()
    #expect(left.count == 0)
  }

  @Test("reports why its version could not be flushed to the disk")
  func format() throws {
    let other = try TemporaryDirectory()
    let count = Atomic(0)
    let plan = Faults.Plan { call, _ in
      guard call == .fsync else { return .proceed }
      return count.add(1, ordering: .relaxed).newValue == 2 ? .fail(.inputOutput) : .proceed
    }
    let error = #expect(throws: WormholeError.self) {
      try Faults.$plan.withValue(plan) { _ = try other.container() }
    }
    #expect(error?.errorNumber == Errno.inputOutput.rawValue)
  }

  @Test("is open to its whole group although its creator ended at any step")
  func groupModes() throws {
    let shared = try TemporaryDirectory()
    try FileDescriptor.open(shared.path, .readOnly).setPermissions(0o2770)
    let container = try SharedContainer(path: shared.path, access: .group)
    let plan = Faults.Plan { call, _ in call == .fchmod ? .fail(.inputOutput) : .proceed }
    for _ in 0..<4 {
      #expect(throws: WormholeError.self) {
        try Faults.$plan.withValue(plan) { try container.value("k").replace(with: 1) }
      }
    }
    try container.value("k").replace(with: 1)
    for path in ["values", "values/k", "values/k/lease", "values/k/lease/held"] {
      #expect(try fileStatus(shared.path + "/" + path).permissions == 0o2770, "\(path)")
    }
  }
}
