import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("Every system call", .blocking)
struct InterruptionTests {
  @Test("does what its row says", arguments: CallTable.rows)
  func plain(_ row: CallRow) throws {
    let bench = try CallBench(row.call, interruptions: 0)
    #expect(try row.run(bench) == row.expected)
    #expect(bench.attempts > 0, "the row does not run the call it is named after")
  }

  @Test("does the same when it is interrupted three times first", arguments: CallTable.rows)
  func interruptedThenServed(_ row: CallRow) throws {
    let plain = try CallBench(row.call, interruptions: 0)
    let result = try row.run(plain)
    let interrupted = try CallBench(row.call, interruptions: 3)
    #expect(try row.run(interrupted) == result)
    #expect(interrupted.attempts == plain.attempts + 3)
  }

  @Test("gives up when it is always interrupted", arguments: CallTable.rows)
  func alwaysInterrupted(_ row: CallRow) throws {
    let bench = try CallBench(row.call, interruptions: .max)
    #expect(throws: Errno.interrupted) { try row.run(bench) }
    #expect(bench.attempts == retryLimit)
  }

  @Test("has a row in the table, `close` aside, which is never retried")
  func complete() {
    let rows = CallTable.rows.map(\.call)
    #expect(Set(rows).union([.close]) == Set(SystemCall.allCases))
    #expect(rows.count == Set(rows).count)
  }

  @Test("is not repeated after another error")
  func otherErrors() throws {
    let bench = try CallBench(.openat, interruptions: 0)
    #expect(throws: Errno.noSuchFile) {
      try bench.act { try FileDescriptor.open("\(bench.path)/none", .readOnly).close() }
    }
    #expect(bench.attempts == 1)
  }

  @Test("of `close` is made once, and the descriptor is gone even when it was interrupted")
  func closeIsNeverRetried() throws {
    let bench = try CallBench(.close, interruptions: .max)
    let number = try Descriptors.high(over: 700)
    #expect(throws: Errno.interrupted) {
      try bench.act { try FileDescriptor(owning: number).close() }
    }
    #expect(bench.attempts == 1)
    #expect(!Descriptors.isOpen(number))
  }
}
