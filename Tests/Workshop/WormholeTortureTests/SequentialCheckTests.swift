import Testing
import WormholeTestSupport
import WormholeWorkshop

@Suite("Cheap checks of histories", .blocking)
struct SequentialCheckTests {
  @Test("find the first pair of reads in which one reader goes backwards")
  func backwards() throws {
    let history = [
      read(3, by: 1, 40, 50), read(5, by: 1, 20, 30), read(4, by: 1, 0, 10),
      read(2, by: 2, 60, 70),
    ]
    let found = try #require(findBackwardRead(in: history))
    #expect(found.earlier == history[1])
    #expect(found.later == history[0])
    #expect(found.description.contains("read → 5, then read → 3"))
  }

  @Test("let different readers and keys each have their own order")
  func separateOrders() {
    let readers = [read(5, by: 1, 0, 10), read(4, by: 2, 20, 30), read(5, by: 1, 40, 50)]
    #expect(findBackwardRead(in: readers) == nil)

    let keys = [
      completed(.read, .value(5), by: 1, 0, 10, key: "a"),
      completed(.read, .value(4), by: 1, 20, 30, key: "b"),
    ]
    #expect(findBackwardRead(in: keys) == nil)
  }

  @Test("count nothing after something as backwards, unless the key is removed")
  func vanished() {
    let history = [read(5, by: 1, 0, 10), read(nil, by: 1, 20, 30)]
    #expect(findBackwardRead(in: history)?.later == history[1])
    #expect(findBackwardRead(in: history + [remove(by: 2, 15, 25)]) == nil)
    #expect(findBackwardRead(in: [history[1]]) == nil)
  }

  @Test("find a value that was never written, whichever operation found it")
  func unwritten() {
    let written = [write(1, by: 1, 0, 10), update(1, to: 2, by: 1, 20, 30)]
    for stranger in [
      read(9, by: 2, 40, 50), swap(9, for: 1, true, by: 2, 40, 50), update(9, to: 1, by: 2, 40, 50),
    ] {
      #expect(findUnwrittenRead(in: written + [stranger]) == stranger)
      #expect(findUnwrittenRead(in: written + [stranger, write(9, by: 3, 90, 99)]) == nil)
      #expect(findUnwrittenRead(in: written + [stranger], initial: ["k": 9]) == nil)
    }
    #expect(findUnwrittenRead(in: written + [read(2, by: 2, 40, 50)]) == nil)
    #expect(findUnwrittenRead(in: written + [read(nil, by: 2, 40, 50)]) == nil)
    #expect(findUnwrittenRead(in: written + [swap(9, for: 5, false, by: 2, 40, 50)]) == nil)
  }

  @Test("count a failed swap's value as unwritten, an unknown write's as written")
  func effects() {
    let found = read(9, by: 2, 40, 50)
    #expect(findUnwrittenRead(in: [swap(1, for: 9, false, by: 1, 0, 10), found]) == found)
    #expect(findUnwrittenRead(in: [unknown(.write(9), by: 1, 0), found]) == nil)
    #expect(findUnwrittenRead(in: [unknown(.update(from: 1, to: 9), by: 1, 0), found]) == nil)
  }
}
