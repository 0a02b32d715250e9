import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

@Suite("The process in the way", .blocking)
struct LeaseHolderTests {
  @Test("has ended, and is not simply gone, while its parent has not waited for it")
  func zombie() throws {
    let null = try FileDescriptor.open("/dev/null", .readOnly)
    let child = try ChildProcess("true", [], input: null.rawValue)
    let process = child.processID
    let end = "process \(process) (true), which has ended, but its parent has not waited for it"
    try eventually("it has ended") { LeaseHolder(visible: process, held: nil).description == end }
    #expect(LeaseHolder(visible: process, held: nil).state == .gone)
    #expect(try child.wait(until: .now + .seconds(60)) == .exited(0))
    let gone = LeaseHolder(visible: process, held: nil).description
    #expect(gone == "process \(process), which has ended")
  }

  // As hidepid does, for another user.
  @Test("cannot be seen if /proc hides it, and is not called gone")
  func hidden() throws {
    let process = try Participant(program: "sh", ["-c", "read go; echo in; read go; echo out"])
    #expect(try process.ask("go") == "in")
    let directory = try TemporaryDirectory()
    let other: Participant
    let answer: String
    do {
      let asRoot = Program.effectiveUser == 0 ? [] : ["--map-root-user"]
      other = try Participant(
        program: "unshare",
        asRoot + [
          "--mount", "sh", "-c",
          "mount -t tmpfs none /proc/\(process.processID) && exec \"$@\"", "sh",
          BuiltProgram.path("participant"), directory.path,
        ])
      answer = try other.ask("holder \(process.processID)")
    } catch let error as Participant.Failure {
      print("skipped: no mounts here: \(error)")
      return
    }
    #expect(answer == "process \(process.processID), whose state cannot be seen from here")
    #expect(try process.ask("go") == "out")
  }
}
