import Foundation
import Glibc
import Testing
import WormholeShims
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeSystem

@Suite("The table of processes", .blocking)
struct ProcessTableTests {
  // The fields after the state are those of proc_pid_stat(5), 3 to 22 and one more.
  private static func line(_ name: String, _ state: String, threads: Int = 1) -> [UInt8] {
    let before = "1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 \(threads) 0"
    return Array("4711 (\(name)) \(state) \(before) 123456 8192\n".utf8)
  }

  @Test(
    "is parsed from its last parenthesis, whatever the name of the program",
    arguments: [
      "sh", "", "a b", ") (", "((", "))", ") R 1 (", "new\nline", "tab\t", "ä", "15 bytes longxx",
    ])
  func names(_ name: String) {
    let status = ProcessStatus.parse(Self.line(name, "S"), processID: 4711)?.status
    #expect(status?.program == name)
    #expect(status?.startTicks == 123_456)
    #expect(status?.isStopped == false)
    #expect(status?.isDead == false)
  }

  @Test("distinguishes machines whose first namespaces have the same inode")
  func machines() {
    let inode: UInt64 = 4_026_531_836
    let here = ProcessIdentity.mix(inode, Array("6f1b1c3e-0000-0000-0000-000000000001\n".utf8))
    let there = ProcessIdentity.mix(inode, Array("6f1b1c3e-0000-0000-0000-000000000002\n".utf8))
    #expect(here != there)
    #expect(
      here != ProcessIdentity.mix(inode + 1, Array("6f1b1c3e-0000-0000-0000-000000000001\n".utf8)))
    let remote = ProcessIdentity(
      processID: ProcessIdentity.current.processID,
      startTicks: ProcessIdentity.current.startTicks, namespace: there)
    #expect(!remote.isVisible)
    #expect(ProcessIdentity.current.isVisible)
  }

  @Test(
    "shows stopped and dead processes",
    arguments: [
      ("R", 1, false, false), ("S", 1, false, false), ("D", 1, false, false),
      ("I", 1, false, false), ("T", 1, true, false), ("t", 1, true, false), ("Z", 1, false, true),
      ("Z", 0, false, true), ("X", 0, false, true),
      // Its first thread has ended, but the others run.
      ("Z", 2, false, false),
    ])
  func states(_ state: String, _ threads: Int, _ stopped: Bool, _ dead: Bool) {
    let status = ProcessStatus.parse(Self.line("x", state, threads: threads), processID: 1)?.status
    #expect(status?.isStopped == stopped)
    #expect(status?.isDead == dead)
  }

  @Test("that is cut off or invalid yields nothing")
  func broken() {
    let whole = Self.line("x", "S")
    // Everything up to the space before the start time is not enough.
    let needed = whole.count - " 123456 8192\n".utf8.count
    for length in 0...needed {
      #expect(ProcessStatus.parse(Array(whole[..<length]), processID: 1) == nil)
    }
    for text in ["", "(", ")", ")(", "1 (x)", "1 (x) ", "1 (x) S 1 2 3"] {
      #expect(ProcessStatus.parse(Array(text.utf8), processID: 1) == nil)
    }
  }

  @Test("follows a child that runs, is stopped, is continued, and dies")
  func child() throws {
    let child = try ChildProcess("sleep", ["60"])
    let id = child.processID
    #expect(ProcessStatus.of(id)?.isDead == false)
    try child.send(.stop)
    try eventually("it is stopped") { ProcessStatus.of(id)?.isStopped == true }
    try child.send(.continue)
    try eventually("it runs") { ProcessStatus.of(id)?.isStopped == false }
    #expect(ProcessStatus.of(id)?.program == "sleep")
    try child.send(.kill)
    try eventually("it is dead and not yet reaped") { ProcessStatus.of(id)?.isDead == true }
    #expect(try child.wait(until: soon) == .killed(signal: 9))
    #expect(ProcessStatus.of(id) == nil)
  }

  /// A shell is in this state between starting a program and its first instruction: a stop of the job in
  /// that moment used to be taken for a process that runs, and its claims were waited for.
  @Test(
    "shows a process as stopped that waits for a stopped child to run its program",
    .enabled("python3 makes that child") {
      try Children.run("sh", ["-c", "command -v python3"]).1 != ""
    })
  func vfork() throws {
    for threads in [1, 2] {
      let script = """
        import ctypes, threading
        c = ctypes.CDLL(None)
        for _ in range(\(threads - 1)): threading.Thread(target=c.pause, daemon=True).start()
        if c.vfork() == 0:
          c.prctl(1, 9)
          c.kill(c.getppid(), 19)
          c.kill(c.getpid(), 19)
        """
      let child = try ChildProcess("python3", ["-c", script])
      try eventually("it is stopped with \(threads) threads") {
        ProcessStatus.of(child.processID)?.isStopped == true
      }
      try child.send(.kill)
      #expect(try child.wait(until: soon) == .killed(signal: 9))
    }
  }

  // `ProcessIdentity.current` asks for the number only where the page is cleared.
  @Test("knows without a system call that it is not a forked child")
  func ownPage() throws {
    let page = try #require(csys_own_page())
    // Swift does not offer it, because a child may do almost nothing: this one reads a byte.
    let symbol = try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork"))
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
    let child = fork()
    if child == 0 { _exit(Int32(page.pointee)) }
    var status: Int32 = -1
    #expect(waitpid(child, &status, 0) == child && status == 0)
    #expect(page.pointee == 1)
    #if DEBUG
      let plan = Faults.Plan { _, _ in .fail(.notPermitted) }
      let first = ProcessIdentity.current
      #expect(Faults.$plan.withValue(plan) { ProcessIdentity.current } == first)
    #endif
  }

  @Test("takes a process for ended only if the kernel says so, whatever a look at it yields")
  func ended() throws {
    let child = try ChildProcess("sleep", ["60"])
    let identity = try #require(ProcessStatus.of(child.processID)).identity
    #expect(!identity.hasEnded)
    #if DEBUG
      // Without a descriptor nothing is known of it; as where /proc hides it.
      let plan = Faults.Plan { _, _ in .fail(.tooManyOpenFiles) }
      #expect(Faults.$plan.withValue(plan) { identity.status } == nil)
      #expect(!Faults.$plan.withValue(plan) { identity.hasEnded })
    #endif
    let reused = ProcessIdentity(
      processID: identity.processID, startTicks: identity.startTicks + 1,
      namespace: identity.namespace)
    #expect(reused.hasEnded)
    try child.send(.kill)
    _ = try child.wait(until: soon)
    #expect(identity.hasEnded)
    let elsewhere = ProcessIdentity(
      processID: identity.processID, startTicks: identity.startTicks,
      namespace: identity.namespace + 1)
    #expect(!elsewhere.hasEnded)
  }

  @Test("knows a process by its number and start, so a reused number is another process")
  func identity() throws {
    let mine = ProcessIdentity.current
    #expect(mine.processID == Program.processID)
    #expect(mine.isVisible)
    #expect(mine.status?.processID == mine.processID)
    let earlier = ProcessIdentity(
      processID: mine.processID, startTicks: mine.startTicks - 1, namespace: mine.namespace)
    #expect(earlier.isVisible)
    #expect(earlier.status == nil)
    let elsewhere = ProcessIdentity(
      processID: mine.processID, startTicks: mine.startTicks, namespace: mine.namespace + 1)
    #expect(!elsewhere.isVisible)
    #expect(elsewhere.status == nil)
    let unknown = ProcessIdentity(processID: 1, startTicks: 0, namespace: 0)
    #expect(!unknown.isVisible)
    #expect(ProcessStatus.of(-1) == nil)
    #expect(ProcessStatus.of(.max) == nil)
  }
}
