import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("The processes with which tests share a container", .blocking)
struct ParticipantTests {
  @Test("end with a status if they cannot begin: they do not crash")
  func beginning() throws {
    let participant = try Participant("/dev/null/none")
    #expect(try participant.wait() == .exited(1))
  }

  // The crash reporter of a participant that was killed meanwhile used to wait forever. `swift test`
  // waited for it, because it had inherited the standard error.
  @Test("start no crash reporter, which could outlive them", arguments: [[], ["A=1"]])
  func crashReporter(environment: [String]) throws {
    let shell = try Participant(
      program: "sh", ["-c", "while read -r line; do eval \"$line\"; done"],
      environment: environment)
    #expect(
      try shell.ask("echo \"$SWIFT_BACKTRACE $A\"") == "enable=no \(environment.isEmpty ? "" : "1")"
    )
  }
}
