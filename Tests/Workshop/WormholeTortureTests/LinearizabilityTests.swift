import Testing
import WormholeTestSupport
import WormholeWorkshop

/// A history and its meaning.
struct NamedHistory: CustomTestStringConvertible {
  let testDescription: String
  let operations: [HistoryOperation]

  init(_ what: String, _ operations: [HistoryOperation]) {
    testDescription = what
    self.operations = operations
  }
}

/// Some histories that a reader can follow; `RandomHistoryTests` compares thousands with the definition.
@Suite("The checker of histories", .blocking)
struct LinearizabilityTests {
  static let wrong: [NamedHistory] = [
    NamedHistory(
      "a lost update",
      [
        update(nil, to: 1, by: 1, 0, 10), update(1, to: 2, by: 1, 20, 40),
        update(1, to: 2, by: 2, 21, 41), read(2, by: 1, 50, 60),
      ]
    ),
    NamedHistory(
      "reads that go backwards while the write is still running",
      [
        write(1, by: 1, 0, 10), write(2, by: 1, 20, 90), read(2, by: 2, 30, 40),
        read(1, by: 2, 50, 60),
      ]
    ),
    NamedHistory(
      "reads of two readers that disagree about the order of two writes",
      [
        write(1, by: 1, 0, 90), write(2, by: 2, 0, 90), read(1, by: 3, 10, 20),
        read(2, by: 3, 30, 40), read(2, by: 4, 10, 20), read(1, by: 4, 30, 40),
      ]
    ),
    NamedHistory(
      "an unknown update seen although the value that it found was gone",
      [
        write(1, by: 1, 0, 10), write(2, by: 1, 20, 30),
        unknown(.update(from: 1, to: 3), by: 2, 40),
        read(3, by: 1, 50, 60),
      ]
    ),
  ]

  @Test("rejects", arguments: wrong)
  func rejects(history: NamedHistory) {
    #expect(checkLinearizability(of: history.operations).violation != nil)
  }

  static let right: [NamedHistory] = [
    NamedHistory("no operation at all", []),
    NamedHistory(
      "writes that overlap, read in the order opposite to their calls",
      [
        write(1, by: 1, 0, 90), write(2, by: 2, 5, 90), read(2, by: 3, 10, 20),
        read(1, by: 3, 30, 40),
      ]
    ),
    NamedHistory(
      "a swap that fails because of a value that is never read",
      [
        write(1, by: 1, 0, 10), write(2, by: 2, 20, 60), write(1, by: 3, 20, 60),
        swap(1, for: 3, false, by: 4, 20, 60), read(1, by: 1, 70, 80),
      ]
    ),
    NamedHistory(
      "an unknown write that takes effect late",
      [
        unknown(.write(9), by: 2, 0), write(1, by: 1, 10, 20), read(1, by: 1, 30, 40),
        write(2, by: 1, 50, 60), read(9, by: 1, 70, 80),
      ]
    ),
    NamedHistory(
      "unknown updates that build upon each other",
      [
        unknown(.update(from: nil, to: 1), by: 1, 0), unknown(.update(from: 1, to: 2), by: 2, 10),
        unknown(.update(from: 2, to: 3), by: 3, 20), read(3, by: 4, 30, 40),
      ]
    ),
    NamedHistory(
      "an unknown update of a value that only it can reveal",
      [
        write(2, by: 1, 0, 5), write(1, by: 1, 10, 20), unknown(.update(from: 1, to: 2), by: 2, 25),
        write(3, by: 3, 30, 90), read(2, by: 1, 40, 50),
      ]
    ),
    NamedHistory(
      // update, remove, swap: found by chance when the memory mixed up configurations.
      "an order that is found only after several attempts from one value",
      [
        read(nil, by: 1, 20, 24), swap(nil, for: 3, true, by: 2, 20, 28), remove(by: 3, 28, 30),
        update(nil, to: 1, by: 4, 28, 34), update(3, to: 4, by: 5, 34, 39),
        remove(by: 6, 40, 43),
      ]
    ),
  ]

  @Test("accepts", arguments: right)
  func accepts(history: NamedHistory) {
    let verdict = checkLinearizability(of: history.operations)
    #expect(verdict.isLinearizable, "\(verdict.violation?.description ?? "undecided")")
  }

  @Test("starts from the given initial values")
  func initialValues() {
    let history = [read(5, by: 1, 0, 10)]
    #expect(checkLinearizability(of: history, initial: ["k": 5]).isLinearizable)
    #expect(checkLinearizability(of: history, initial: ["other": 5]).violation != nil)
  }

  @Test("keeps keys apart and names the wrong one")
  func keys() throws {
    let right = [
      completed(.write(1), .done, by: 1, 0, 10, key: "a"),
      completed(.read, .value(nil), by: 1, 20, 30, key: "b"),
    ]
    #expect(checkLinearizability(of: right).isLinearizable)
    let wrong = right + [completed(.read, .value(1), by: 1, 40, 50, key: "b")]
    #expect(try #require(checkLinearizability(of: wrong).violation).key == "b")
  }

  @Test("returns undecided, not right or wrong, when the limit of steps is reached")
  func limit() {
    let history = [write(1, by: 1, 0, 10), write(2, by: 1, 20, 30), read(2, by: 2, 40, 50)]
    guard case .undecided(limit: 2) = checkLinearizability(of: history, limit: 2) else {
      Issue.record("three operations cannot be decided in two steps")
      return
    }
    #expect(checkLinearizability(of: history, limit: 20).isLinearizable)
  }

  @Test("shows only the operations that contradict each other, however long the history")
  func smallestWindow() throws {
    // Given a long quiet history with one stale read in its middle
    var history: [HistoryOperation] = []
    for round in UInt64(0)..<500 {
      history.append(write(round + 1, by: 1, round * 100, round * 100 + 10))
      history.append(read(round + 1, by: 2, round * 100 + 20, round * 100 + 30))
      history.append(read(round + 1, by: 3, round * 100 + 20, round * 100 + 30))
    }
    let stale = read(200, by: 4, 200 * 100 + 40, 200 * 100 + 50)
    history.append(stale)

    let violation = try #require(checkLinearizability(of: history).violation)

    // Then the stale read, and one read of the newer value before it, suffice
    #expect(violation.operations.count == 2)
    #expect(violation.operations.last == stale)
    let other = try #require(violation.operations.first)
    #expect(other.call == .read && other.outcome == .completed(.value(201), at: 20030))
    #expect(violation.origins.contains(write(200, by: 1, 19900, 19910)))
    #expect(violation.description.contains("read → 200"))
    #expect(violation.description.contains("write 200"))
  }

  @Test("goes back as far as the contradiction reaches, past what a running write could explain")
  func longContradiction() throws {
    // The second read of 9 needs the write, which was seen already.
    let history = [
      write(9, by: 1, 0, 200), read(9, by: 2, 10, 20), write(1, by: 3, 30, 40),
      read(1, by: 2, 50, 60), read(9, by: 2, 70, 80), read(9, by: 3, 90, 100),
    ]
    let violation = try #require(checkLinearizability(of: history).violation)
    #expect(violation.operations == [history[0], history[1], history[2], history[4]])
    #expect(violation.origins.isEmpty)
  }
}
