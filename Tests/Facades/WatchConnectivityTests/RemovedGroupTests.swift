import Testing
import WormholeTestSupport
import WormholeToolkit

/// Nothing else makes the container again: the command of the other process only looks at the end.
@Suite("Programs that run while their group's container is removed", .blocking)
struct RemovedGroupTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func participant() throws -> Participant {
    try Participant("group:group.test", environment: ["XDG_DATA_HOME=\(directory.path)"])
  }

  private func remove() throws {
    let path = directory.path + "/app-groups/group.test"
    #expect(try ChildProcess("rm", ["-r", path]).wait(until: soon) == .exited(0))
  }

  @Test("lose no default that they set afterwards")
  func defaults() throws {
    let one = try participant()
    for number in 1...3 {
      #expect(try one.ask("defaults-set k \(number)") == "done")
      try remove()
      #expect(try one.ask("defaults-set k \(10 * number)") == "done")
      #expect(try participant().ask("defaults-get k") == "\(10 * number)")
    }
  }

  @Test(
    "deliver what a session sends afterwards",
    arguments: [("info 1 1", "info n=1"), ("context n=1", "context n=1")])
  func session(_ command: String, _ event: String) throws {
    let phone = try participant()
    #expect(try phone.ask("session-start phone watch full 20") == "activated")
    try remove()
    #expect(try phone.session(command) == "done")
    let watch = try participant()
    #expect(try watch.ask("session-start watch watch full 20") == "activated")
    #expect(try watch.await(event) == event)
  }
}
