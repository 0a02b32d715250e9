import Testing
import WormholeEtcd
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeTorture

@Suite("Recorded histories", .blocking)
struct RecordedHistoryTests {
  static let operations = [
    read(nil, by: 1, 0, 10), read(7, by: 1, 20, 30), write(8, by: 1, 5, 6), remove(by: 1, 1, 2),
    swap(nil, for: 1, true, by: 1, 3, 4), swap(9, for: .max, false, by: 1, 5, 6),
    update(nil, to: 1, by: 1, 7, 8), update(1, to: nil, by: 1, 9, 9),
    unknown(.write(3), by: 1, 4), unknown(.update(from: 1, to: 2), by: 1, 5),
    completed(.read, .value(1), by: 1, 0, 1, key: ""),
    completed(.read, .value(1), by: 1, 2, 3, key: "a b;%\n/é.plist"),
  ]

  /// The entries that a recorder writes for an operation.
  private func entries(_ operation: HistoryOperation) -> [JournalEntry] {
    var entries = [
      JournalEntry.began(key: operation.key, operation.call, at: operation.invocation)
    ]
    if case .update(let from, let to) = operation.call {
      entries.append(.tried(from: from, to: to))
    }
    switch operation.outcome {
    case .completed(let answer, at: let time): entries.append(.answered(answer, at: time))
    case .unknown: entries.append(.unknown)
    }
    return entries
  }

  private func text(_ entries: [JournalEntry]) throws -> String {
    try entries.map { try $0.line }.joined()
  }

  private func operations(_ text: String) -> [HistoryOperation] {
    JournalEntry.parse(text).operations(of: 1)
  }

  @Test("are read as they were written, with other entries between them")
  func roundTrip() throws {
    let all = Self.operations.flatMap(entries)
    #expect(try operations(text(all)) == Self.operations)
    let mixed = all.flatMap { [.did("add"), $0, .retried] }
    #expect(try operations(text(mixed)) == Self.operations)
  }

  @Test("cut anywhere keep whole operations, and at most one of unknown effect")
  func torn() throws {
    let first = write(1, by: 1, 10, 20)
    let whole = try text(entries(first))
    for last in Self.operations {
      let lines = try text(entries(last))
      for length in 0..<lines.count {
        let found = operations(whole + lines.prefix(length))
        #expect(found.first == first)
        if found.count > 1 {
          #expect(found.count == 2)
          #expect(found[1].outcome == .unknown && found[1].call == last.call)
        }
      }
    }
  }

  @Test(
    "cut after the call have an operation that may have happened; an update only when it was tried")
  func tornCall() throws {
    let began = JournalEntry.began(key: "k", .write(55), at: 10)
    let line = try began.line
    #expect(operations(String(line.dropLast())) == [])
    #expect(operations(line) == [unknown(.write(55), by: 1, 10)])
    let update = JournalEntry.began(key: "k", .update(from: nil, to: nil), at: 10)
    #expect([update].operations(of: 1) == [])
    let tries = [update, .tried(from: 1, to: 2), .tried(from: 3, to: 4)]
    #expect(tries.operations(of: 1) == [unknown(.update(from: 3, to: 4), by: 1, 10)])
    #expect(
      (tries + [.answered(.done, at: 20)]).operations(of: 1) == [
        completed(.update(from: 3, to: 4), .done, by: 1, 10, 20)
      ])
  }

  @Test("have no operations that certainly had no effect")
  func withoutEffect() throws {
    let began = JournalEntry.began(key: "k", .write(5), at: 10)
    #expect([began, .withoutEffect].operations(of: 1) == [])
    #expect([began, .unknown].operations(of: 1) == [unknown(.write(5), by: 1, 10)])
    #expect([began, .withoutEffect, .unknown].operations(of: 1) == [])
    #expect(
      [began, began, .answered(.done, at: 20)].operations(of: 1) == [
        unknown(.write(5), by: 1, 10), write(5, by: 1, 10, 20),
      ])
  }
}
