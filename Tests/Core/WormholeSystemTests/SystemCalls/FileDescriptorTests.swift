import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("A descriptor", .blocking)
struct FileDescriptorTests {
  @Test("is closed once, by `close` or with its owner, never by both")
  func closedOnce() throws {
    let bench = try CallBench(.close, interruptions: 0)
    let first = try Descriptors.high(over: 710)
    try bench.act { try FileDescriptor(owning: first).close() }
    #expect(bench.attempts == 1)
    let second = try Descriptors.high(over: 710)
    bench.act { _ = FileDescriptor(owning: second).rawValue }
    #expect(bench.attempts == 2)
    #expect(!Descriptors.isOpen(second))
  }

  @Test("that was closed and reused by another file is left to that file")
  func reusedNumber() throws {
    func closeAndReuse() throws -> Int32 {
      let number = try Descriptors.high(over: 720)
      let owner = FileDescriptor(owning: number)
      try owner.close()
      #expect(!Descriptors.isOpen(number))
      try Descriptors.reopen(number)
      return number
    }
    let number = try closeAndReuse()
    #expect(Descriptors.isOpen(number))
    try FileDescriptor(owning: number).close()
  }

  @Test("with several owners is closed with the last")
  func shared() throws {
    let number = try Descriptors.high(over: 730)
    var first: SharedDescriptor? = SharedDescriptor(FileDescriptor(owning: number))
    var second = first
    first = nil
    #expect(Descriptors.isOpen(number))
    withExtendedLifetime(second) {}
    second = nil
    #expect(!Descriptors.isOpen(number))
    _ = (first, second)
  }

  @Test("that cannot be closed is an error")
  func closeOfNothing() throws {
    let number = try Descriptors.high(over: 740)
    try FileDescriptor(owning: number).close()
    #expect(throws: Errno.badFileDescriptor) { try FileDescriptor(owning: number).close() }
  }

  @Test("is close-on-exec, whatever made it")
  func closeOnExec() throws {
    let directory = try TemporaryDirectory()
    let plain = try FileDescriptor.open("\(directory.path)/a", [.writeOnly, .create])
    #expect(Descriptors.closesOnExec(plain.rawValue))
    let parent = try FileDescriptor.open(directory.path, [.readOnly, .directory])
    let beneath = try FileDescriptor.openBeneath("a", at: parent.rawValue, .readOnly)
    #expect(Descriptors.closesOnExec(beneath.rawValue))
    let queue = try nextEventQueue()
    #expect(Descriptors.closesOnExec(queue.rawValue))
    let counter = try FileDescriptor.wakeUpCounter()
    #expect(Descriptors.closesOnExec(counter.rawValue))
    let pipe = try makePipe()
    #expect(Descriptors.closesOnExec(pipe.read.rawValue))
    #expect(Descriptors.closesOnExec(pipe.write.rawValue))
    try Faults.$plan.withValue(OpenBeneathTests.withoutOpenat2) {
      let walked = try FileDescriptor.openBeneath("./a", at: parent.rawValue, .readOnly)
      #expect(Descriptors.closesOnExec(walked.rawValue))
    }
  }

  @Test("for signals is close-on-exec too: a child's handle", .ownProcess)
  func childHandle() throws {
    let child = try ChildProcess("sleep", ["60"])
    // No other code opens anything here, so the handle is the highest number.
    let numbers = (3..<64).filter { Descriptors.isOpen(Int32($0)) }
    let links = numbers.filter { number in
      do throws(Errno) {
        return try linkTarget("/proc/self/fd/\(number)").contains("pidfd")
      } catch {
        return false
      }
    }
    #expect(links.count == 1, "no handle among \(numbers)")
    #expect(links.allSatisfy { Descriptors.closesOnExec(Int32($0)) }, "inherited")
    try child.send(.kill)
  }

  @Test("of the parent does not reach a child, even one without close-on-exec")
  func notInherited() throws {
    let leaky = try Descriptors.high(over: 750)
    _ = fcntl(leaky, F_SETFD, 0)
    defer { _ = FileDescriptor(owning: leaky).rawValue }
    // The listing program's own descriptor of the directory is the fourth.
    let (end, output) = try Children.run("ls", ["/proc/self/fd"])
    #expect(end == .exited(0))
    #expect(output.split(separator: "\n") == ["0", "1", "2", "3"])
  }
}
