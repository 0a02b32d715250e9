import Testing
import WormholeTestSupport

@testable import Communicator

@Suite("CompletionTable", .blocking)
struct CompletionTableTests {
  private typealias Table = CompletionTable<String, Int, String>

  @Test("returns a completion once, when its transfer ends, and keeps nothing")
  func once() {
    var table = Table()
    table.willBegin()
    #expect(table.didBegin("a", "completion") == nil)
    #expect(table.didEnd("a", 1) == "completion")
    #expect(table.didEnd("a", 1) == nil)
    #expect(table.isEmpty)
  }

  // In the original such an end found no completion, which then stayed for ever.
  @Test("knows an end that comes before the transfer was returned")
  func early() {
    var table = Table()
    table.willBegin()
    #expect(table.didEnd("a", 7) == nil)
    #expect(table.didBegin("a", "completion") == 7)
    #expect(table.isEmpty)
  }

  @Test("keeps other transfers' ends only while a transfer is being begun")
  func strangers() {
    var table = Table()
    #expect(table.didEnd("sent by a process before", 1) == nil)
    #expect(table.isEmpty)
    table.willBegin()
    table.willBegin()
    #expect(table.didEnd("sent by a process before", 1) == nil)
    #expect(table.didEnd("b", 2) == nil)
    #expect(table.didBegin("a", "first") == nil)
    #expect(table.didBegin("b", "second") == 2)
    #expect(table.didEnd("a", 3) == "first")
    #expect(table.isEmpty)
  }

  @Test("keeps nothing for a transfer without a completion")
  func none() {
    var table = Table()
    table.willBegin()
    #expect(table.didBegin("a", nil) == nil)
    #expect(table.isEmpty)
  }
}
