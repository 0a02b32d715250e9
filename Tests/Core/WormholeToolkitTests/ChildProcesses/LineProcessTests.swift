import Testing
import WormholeTestSupport

@testable import WormholeSystem
@testable import WormholeToolkit

@Suite("A program that receives lines", .blocking)
struct LineProcessTests {
  @Test("that does not read them any more is an error, and does not end this process")
  func ended() throws {
    let program = try LineProcess("true", [])
    #expect(throws: LineProcess.Failure.self) { try program.line(until: soon) }
    // The pipe may hold what is written before its reader has gone.
    try eventually("it reads no more") {
      do throws(Errno) {
        try program.tell("hello")
        return false
      } catch {
        return error == .brokenPipe
      }
    }
  }
}

extension LineProcessTests {
  /// It used to block the caller for as long as the program did not read.
  @Test("that does not read them is an error by the deadline; one that reads gets all")
  func unread() throws {
    let long = String(repeating: "a", count: 200_000)
    let deaf = try LineProcess("sleep", ["60"])
    #expect(throws: Errno.timedOut) { try deaf.tell(long, until: .now + .milliseconds(100)) }
    let reader = try LineProcess("sh", ["-c", "read line; echo ${#line}"])
    try reader.tell(long, until: soon)
    #expect(try reader.line(until: soon) == "200000")
  }

  @Test("has ended when its own process has, with all that it has printed")
  func grandchild() throws {
    let program = try LineProcess("sh", ["-c", "echo one; sleep 60 & echo $!; exit 3"])
    #expect(try program.line(until: soon) == "one")
    let child = try #require(Int32(try program.line(until: soon)))
    #expect(throws: LineProcess.Failure.self) { try program.line(until: soon) }
    #expect(try program.wait(until: soon) == .exited(3))
    try Program.send(.kill, to: child)
  }
}

@Suite("The wait of a blocked thread", .blocking)
struct ThreadSemaphoreTests {
  @Test("ends with a signal, of before or after, or at its deadline")
  func ends() throws {
    let semaphore = ThreadSemaphore()
    semaphore.signal()
    #expect(semaphore.wait(until: soon))
    #expect(!semaphore.wait(until: .now))
    #expect(!semaphore.wait(until: .now + .milliseconds(1)))
    try startThread(name: "signal") { semaphore.signal() }
    #expect(semaphore.wait(until: nil))
  }
}
