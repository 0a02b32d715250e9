import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("One container is named, by an option or by the environment", .blocking)
struct ContainerSelectionTests {
  private func selected(
    _ arguments: [String], _ variables: [String: String] = [:]
  ) throws -> ContainerSelection.Name? {
    let line = Invocations(variables: variables)
    guard case .run(_, let parsed) = try line.parse(arguments) else { return nil }
    return parsed.selectedContainer?.name
  }

  @Test("Options stand before the subcommand, after it, and between nested ones")
  func places() throws {
    for arguments in [
      ["--group", "g", "notify", "get", "n"], ["notify", "--group=g", "get", "n"],
      ["notify", "get", "--group", "g", "n"], ["notify", "get", "n", "--group=g"],
    ] {
      #expect(try selected(arguments) == .group("g"))
    }
    #expect(try selected(["--container", "/d", "status"]) == .directory("/d"))
    #expect(try selected(["status", "--container=d"]) == .directory("d"))
  }

  @Test("An option beats the environment, and an empty variable is none")
  func environment() throws {
    let both = ["WORMHOLE_GROUP": "g", "WORMHOLE_CONTAINER": "/d"]
    #expect(try selected(["status"], ["WORMHOLE_GROUP": "g"]) == .group("g"))
    #expect(try selected(["status"], ["WORMHOLE_CONTAINER": "/d"]) == .directory("/d"))
    #expect(
      try selected(["status"], ["WORMHOLE_GROUP": "", "WORMHOLE_CONTAINER": "/d"])
        == .directory("/d"))
    #expect(try selected(["status", "--group", "x"], both) == .group("x"))
    #expect(try selected(["status", "--container", "x"], both) == .directory("x"))
  }

  @Test("A variable that this program has set for a command gives way to the other one")
  func inherited() throws {
    let both = ["WORMHOLE_GROUP": "g", "WORMHOLE_CONTAINER": "/d"]
    for (inherited, name) in [
      ("WORMHOLE_CONTAINER", ContainerSelection.Name.group("g")),
      ("WORMHOLE_GROUP", .directory("/d")),
    ] {
      let variables = both.merging(["WORMHOLE_INHERITED": inherited]) { $1 }
      #expect(try selected(["status"], variables) == name)
    }
  }

  @Test("Two containers are refused, and so is none")
  func ambiguity() {
    let none = Invocations(variables: [:])
    let both = Invocations(variables: ["WORMHOLE_GROUP": "g", "WORMHOLE_CONTAINER": "/d"])
    #expect(
      none.refusal("--group", "g", "status", "--container", "d")?.contains("exclude") == true)
    #expect(both.refusal("status")?.contains("both set") == true)
    #expect(none.refusal("status")?.contains("no container is named") == true)
    #expect(none.refusal("status", "--group=")?.contains("empty") == true)
    #expect(none.refusal("status", "--container", "")?.contains("empty") == true)
  }

  @Test("A command with its own container needs none, and help needs none")
  func withoutContainer() throws {
    #expect(try selected(["demo"]) == nil)
    #expect(Invocations(variables: [:]).refusal("help", "send") == nil)
  }
}
