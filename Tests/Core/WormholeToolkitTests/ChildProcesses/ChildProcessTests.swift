import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeToolkit

@Suite("A child process", .blocking)
struct ChildProcessTests {
  @Test("reports how it ended")
  func endings() throws {
    #expect(try Children.run("true", []).end == .exited(0))
    #expect(try Children.run("sh", ["-c", "exit 255"]).end == .exited(255))
    #expect(try Children.run("sh", ["-c", "kill -9 $$"]).end == .killed(signal: 9))
    #expect(try Children.run("sh", ["-c", "kill -15 $$"]).end == .killed(signal: 15))
    // A death that may leave a core is also a death by signal.
    #expect(
      try Children.run("sh", ["-c", "ulimit -c 0; kill -6 $$"]).end == .killed(signal: 6))
  }

  @Test("that does not exist, or may not be run, is refused")
  func refusals() throws {
    let directory = try TemporaryDirectory()
    #expect(throws: Errno.noSuchFile) { try Children.run("wormhole-test-none", []) }
    #expect(throws: Errno.noSuchFile) { try Children.run("\(directory.path)/none", []) }
    try FileDescriptor.open("\(directory.path)/file", [.writeOnly, .create]).close()
    #expect(throws: Errno.accessDenied) { try Children.run("\(directory.path)/file", []) }
    let number = try Descriptors.high(over: 760)
    try FileDescriptor(owning: number).close()
    #expect(throws: Errno.badFileDescriptor) {
      _ = try ChildProcess("true", [], input: number).processID
    }
  }

  @Test("gets its arguments and environment as they are")
  func arguments() throws {
    let arguments = ["", " ", "a b", "-x", "new\nline", "ä", "*", "$HOME"]
    let (_, printed) = try Children.run("printf", ["%s|"] + arguments)
    #expect(printed == arguments.map { $0 + "|" }.joined())
    let (_, own) = try Children.run("/usr/bin/env", [], environment: ["A=1", "B=x y"])
    #expect(own == "A=1\nB=x y\n")
    let (_, none) = try Children.run("/usr/bin/env", [], environment: [])
    #expect(none == "")
    let (_, inherited) = try Children.run("/usr/bin/env", [])
    #expect(inherited.contains("PATH=\(Program.environment("PATH") ?? "")\n"))
  }

  @Test("begins in a given directory, and is found from there; this process stays in its own")
  func directory() throws {
    let directory = try TemporaryDirectory()
    try FileManager.default.createSymbolicLink(
      atPath: "\(directory.path)/program", withDestinationPath: "/bin/sh")
    let opened = try FileDescriptor.open(directory.path, [.pathOnly, .directory])
    let before: String = try linkTarget("/proc/self/cwd")
    let real: String = try linkTarget("/proc/self/fd/\(opened.rawValue)")
    let child = try ChildProcess(
      "./program", ["-c", "test \"$(pwd -P)\" = \"$1\"", "sh", real], in: opened.rawValue)
    #expect(try child.wait(until: soon) == .exited(0))
    #expect(try linkTarget("/proc/self/cwd") == before)
  }

  @Test("that still runs at a deadline is not lost; exactly one later wait reports its end")
  func deadline() throws {
    let child = try ChildProcess("sleep", ["60"])
    #expect(try child.wait(until: .now - .seconds(1)) == nil)
    #expect(try child.wait(until: .now + .milliseconds(5)) == nil)
    try child.send(.kill)
    #expect(try child.wait(until: soon) == .killed(signal: 9))
    #expect(throws: Errno.noChild) { try child.wait(until: soon) }
    // By number this could hit the process that has it now.
    #expect(throws: Errno.noSuchProcess) { try child.send(.kill) }
  }

  @Test("that is detached creates its output file, leads a session, and is found by its output")
  func detached() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/output"
    let script = "cut -d' ' -f1,6 /proc/$$/stat; pwd; cat; exec sleep 60"
    let child = try ChildProcess(
      "/bin/sh", ["-c", script], environment: ["A=1"], detachedPrintingTo: path)
    let output = try fileStatus(path)
    #expect(output.permissions == 0o600)
    // Its own children print there, too.
    #expect(try processes(printingTo: output, orWith: "A=no").first?.processID == child.processID)
    try eventually("it has printed") {
      try ItemText.read(path) == "\(child.processID) \(child.processID)\n/\n"
    }
    try eventually("it is the only one") {
      try processes(printingTo: output, orWith: "A=no").map(\.processID) == [child.processID]
    }
    // No program is started if the file cannot be created.
    for (taken, error) in [(path, Errno.alreadyExists), (path + "/x", .notDirectory)] {
      #expect(throws: error) {
        _ = try ChildProcess("/bin/true", [], environment: [], detachedPrintingTo: taken).processID
      }
    }
    #expect(throws: Errno.noSuchFile) {
      _ = try ChildProcess(
        "/none", [], environment: [], detachedPrintingTo: directory.path + "/other"
      ).processID
    }
    #expect(try fileStatus(directory.path + "/other").size == 0)
    let variable = "B=\(UInt64.random(in: .min ... .max))"
    let other = try ChildProcess("sleep", ["60"], environment: [variable])
    #expect(
      try processes(printingTo: fileStatus("/proc/self/stat"), orWith: variable).map(\.processID)
        == [other.processID])
    try child.send(.kill)
    try other.send(.kill)
    _ = try child.wait(until: soon)
    _ = try other.wait(until: soon)
    #expect(try processes(printingTo: output, orWith: variable).isEmpty)
  }

  private func expectReaped(_ processID: Int32) throws {
    try eventually("process \(processID) is reaped") { ProcessStatus.of(processID) == nil }
  }

  // A zombie used to keep its number taken, and a wait for any child saw it first, for ever.
  @Test("that is no longer waited for is reaped when it ends: late, soon, or before that")
  func releaseLock() throws {
    let sleeping = try (0..<3).map { _ in
      let child = try ChildProcess("sleep", ["60"])
      #expect(try child.wait(until: .now) == nil)
      return child.processID
    }
    let soon = try ChildProcess("true", [], output: 2, errors: 1).processID
    let ended: Int32
    do {
      let child = try ChildProcess("true", [], output: 2, errors: 1)
      ended = child.processID
      #expect(try waitReadable([child.descriptor], until: .now + testPatience) == [true])
    }
    try expectReaped(soon)
    try expectReaped(ended)
    for processID in sleeping.reversed() {
      #expect(ProcessStatus.of(processID)?.isDead == false, "it is released, not ended")
      kill(processID, SIGKILL)
      try expectReaped(processID)
    }
  }

  // It used to run for a moment, until the lack of a descriptor to wait for it was noticed.
  @Test("that is refused for lack of descriptors has not run, and leaves no zombie", .ownProcess)
  func descriptors() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/ran"
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    let lowest = rlim_t(fcntl(0, F_DUPFD_CLOEXEC, 0)) + 1
    var refusals = 0
    for number in lowest..<lowest + 40 {
      limit.rlim_cur = number
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      do {
        let child = try ChildProcess("sh", ["-c", ": >'\(path)'"])
        #expect(try child.wait(until: soon) == .exited(0))
        break
      } catch {
        refusals += 1
        #expect(throws: Errno.noSuchFile) { try fileStatus(path) }
        #expect(waitpid(-1, nil, WNOHANG) <= 0, "a zombie is left")
      }
    }
    #expect(refusals > 2)
    #expect(try fileStatus(path).kind == .regular)
  }

  @Test("passes an inherited file to its own children; all of them can be found and ended")
  func inheritance() throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open(directory.path, [.readOnly, .directory])
    let status = try file.status()
    let script = "sleep 60 & echo $! >child; wait"
    let child = try ChildProcess(
      "sh", ["-c", "cd '\(directory.path)'; " + script], inheriting: file.rawValue)
    try eventually("it has started a child") {
      try ItemText.read(directory.path + "/child")?.isEmpty == false
    }
    let other = try #require(
      Int32(try ItemText.read(directory.path + "/child")?.split(separator: "\n").first ?? ""))
    #expect(try Set(inheritors(of: status).map(\.processID)) == [child.processID, other])
    try child.send(.stop)
    #expect(try endInheritors(of: status, until: .now + .seconds(30)))
    #expect(try child.wait(until: soon) == .killed(signal: 9))
    #expect(ProcessStatus.of(other)?.isDead ?? true)
    #expect(try inheritors(of: status).isEmpty)
  }

  @Test("has the default action for signals that are ignored here, and none blocked", .ownProcess)
  func signals() throws {
    prepareSignals()
    var all = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, nil)
    let (_, status) = try Children.run("cat", ["/proc/self/status"])
    for name in ["SigBlk", "SigIgn"] {
      let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") } ?? ""
      let mask = UInt64(line.split(separator: "\t").last ?? "", radix: 16) ?? .max
      // SIGPIPE is 13, SIGXFSZ 25; the program that started the tests may ignore others.
      let judged: UInt64 = name == "SigBlk" ? .max : 1 << 12 | 1 << 24
      #expect(mask & judged == 0, "\(line)")
    }
  }

  @Test(
    "gets the three descriptors in any order, also when they are standard ones themselves",
    .ownProcess)
  func redirection() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path
    // The output of the test runner goes to its former place.
    let streams = (fcntl(1, F_DUPFD_CLOEXEC, 200), fcntl(2, F_DUPFD_CLOEXEC, 200))
    defer {
      dup2(streams.0, 1)
      dup2(streams.1, 2)
    }
    // These become files with these names. Not 3 but 90, which no other code in this process has,
    // because 3 may be the test runner's own channel, which may be closed at any time.
    let numbers: [Int32] = [0, 1, 2, 90]
    for number in numbers {
      let file = try FileDescriptor.open("\(path)/\(number)", [.readWrite, .create])
      let high = fcntl(file.rawValue, F_DUPFD_CLOEXEC, 100 + number)
      try file.close()
      dup2(high, number)
    }
    for choice in 0..<64 {
      let (input, output) = (numbers[choice % 4], numbers[choice / 4 % 4])
      let errors = numbers[choice / 16]
      let child = try ChildProcess(
        "sh",
        [
          "-c", "(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2) > \"$0\"; true",
          "\(path)/links",
        ],
        input: input, output: output, errors: errors)
      #expect(try child.wait(until: soon) == .exited(0))
      let links = try FileDescriptor.open("\(path)/links", .readOnly)
      let text = String(
        decoding: try links.readToEnd(expectedBytes: 0, maximumBytes: 4_096), as: UTF8.self)
      #expect(
        text == "\(path)/\(input)\n\(path)/\(output)\n\(path)/\(errors)\n", "\(choice): \(text)")
    }
  }

  @Test("can be started although only few descriptors are allowed", .ownProcess)
  func fewDescriptors() throws {
    var limit = rlimit(rlim_cur: 32, rlim_max: 32)
    #expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    let child = try ChildProcess("true", [], output: 2, errors: 1)
    #expect(try child.wait(until: soon) == .exited(0))
  }

  @Test("leaves no descriptor behind, a thousand times", .ownProcess)
  func noLeaks() throws {
    _ = try Children.run("true", [])
    let before = try Descriptors.open()
    for _ in 0..<1_000 {
      let child = try ChildProcess("true", [], output: 2, errors: 1)
      #expect(try child.wait(until: soon) == .exited(0))
    }
    for _ in 0..<10 {
      do {
        _ = try ChildProcess("wormhole-test-none", [], output: 2, errors: 1).processID
        Issue.record("the program does not exist")
      } catch {
        #expect(error == .noSuchFile)
      }
    }
    #expect(try Descriptors.open() == before, "descriptors leaked")
  }
}
