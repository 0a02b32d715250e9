import Histories
import TestScopes
import Testing

@Suite("Recorded histories", .blocking)
struct HistoryLineTests {
  static let operations = [
    read(nil, by: 1, 0, 10), read(7, by: 1, 20, 30), write(8, by: 2, 5, 6), remove(by: 3, 1, 2),
    swap(nil, for: 1, true, by: 4, 3, 4), swap(9, for: .max, false, by: 4, 5, 6),
    update(nil, to: 1, by: 5, 7, 8), update(1, to: nil, by: 5, 9, 9),
    increment(finding: 0, by: 6, 1, 3), unknown(.write(3), by: 7, 4),
    unknown(.update(from: 1, to: 2), by: 7, 5), unknown(.increment, by: 7, 6),
    completed(.read, .value(1), by: 8, 0, 1, key: ""),
    completed(.read, .value(1), by: 8, 2, 3, key: "a b;%\n/é.plist"),
  ]

  @Test("are read as they were written")
  func roundTrip() throws {
    let text = Self.operations.map(HistoryLine.line(for:)).joined()
    #expect(text.split(separator: "\n").count == Self.operations.count)
    #expect(try parseHistory(text) == Self.operations)
  }

  @Test("look as documented")
  func format() throws {
    let text = "7 counter 81200 update ; try 4 5 ; try 6 7 ; ok 93100\n"
    #expect(
      try parseHistory(text) == [
        completed(.update(from: 6, to: 7), .done, by: 7, 81200, 93100, key: "counter")
      ])
  }

  @Test("cut anywhere keep whole operations, and at most one of unknown effect")
  func torn() throws {
    let whole = HistoryLine.line(for: write(1, by: 1, 10, 20))
    for last in Self.operations {
      let line = HistoryLine.line(for: last)
      for length in 0..<line.count {
        let operations = try parseHistory(whole + line.prefix(length))
        #expect(operations.first == write(1, by: 1, 10, 20))
        if operations.count > 1 {
          #expect(operations.count == 2)
          #expect(operations[1].outcome == .unknown && operations[1].call == last.call)
        }
      }
    }
  }

  @Test("cut after the call leave an operation that may have happened; cut within it, none")
  func tornCall() throws {
    #expect(try parseHistory("1 k 10 write 55") == [])
    #expect(try parseHistory("1 k 10 write 55 ") == [])
    #expect(try parseHistory("1 k 10 write 55 ; ") == [unknown(.write(55), by: 1, 10)])
    #expect(try parseHistory("1 k 10 write 55 ; ok 1") == [unknown(.write(55), by: 1, 10)])
    #expect(try parseHistory("1 k 10 write 55 ; ok 19") == [unknown(.write(55), by: 1, 10)])
    #expect(try parseHistory("1 k 10 update ; ") == [])
    #expect(try parseHistory("1 k 10 update ; try 1 2") == [])
    let attempted = [unknown(.update(from: 1, to: 2), by: 1, 10)]
    #expect(try parseHistory("1 k 10 update ; try 1 2 ; try 3 ") == attempted)
  }

  @Test("leave out operations that certainly had no effect")
  func withoutEffect() throws {
    let call = HistoryLine.invocation(process: 1, key: "k", call: .write(5), at: 10)
    #expect(try parseHistory(call + HistoryLine.withoutEffect) == [])
    #expect(try parseHistory(call + HistoryLine.unknown) == [unknown(.write(5), by: 1, 10)])
  }

  @Test(
    "with a wrong line are refused with the line and its fault",
    arguments: [
      ("1 k x write 5 ; ok 20", "“x” is not a number"),
      ("1 %zz 10 write 5 ; ok 20", "“%zz” is not an escaped key"),
      ("1 k 10 append 5 ; ok 20", "no operation is called “append”"),
      ("1 k 10 write 5 ; done", "no operation ends in “done”"),
      ("1 k 10 write 5 ; ok 20 yes", "“swapped(true)” is not an answer to this operation"),
      ("1 k 10 write 5 ; ok 20 21 22", "“22” is not an answer to this operation"),
      ("1 k 10 write 5 ; ok 9", "the answer is earlier than the call"),
      ("1 k 10 update ; ok 20", "a completed update has no attempt"),
      ("1 k 10 write 5", "the semicolon is missing"),
      ("1 k 10 write 5 ;", "the ending is missing"),
      ("-1 k 10 write 5 ; ok 20", "“-1” is not a number"),
      ("1 k 10 write 99999999999999999999 ; ok 20", "“99999999999999999999” is not a number"),
    ])
  func wrong(line: String, reason: String) throws {
    let error = try #require(throws: HistoryFormatError.self) {
      try parseHistory("1 k 1 write 1 ; ok 2\n" + line + "\n")
    }
    #expect(error.line == 2)
    #expect(error.reason == reason)
  }
}
