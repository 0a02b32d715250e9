import Testing
import Wormhole
import WormholeEtcd
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeTorture

@Suite("The checks of the torture program find", .blocking)
struct TortureCheckTests {
  private func failed(_ checks: [Check]) -> [String] {
    checks.filter { !$0.holds }.map(\.promise)
  }

  // MARK: Histories

  private func increment(_ from: UInt64?, at time: UInt64, finished: Bool = true)
    -> HistoryOperation
  {
    HistoryOperation(
      process: 1, key: Workload.counters[0], call: .update(from: from, to: (from ?? 0) + 1),
      invocation: time, outcome: finished ? .completed(.done, at: time + 5) : .unknown)
  }

  private func checks(
    _ operations: [HistoryOperation], observed: [HistoryOperation] = [], last: UInt64
  ) -> [Check] {
    var records = Records()
    records.operations = operations
    records.observations = observed
    return HistoryChecks(
      records: records, last: [Workload.counters[0]: last]
    ).all
  }

  private func read(_ value: UInt64, _ from: UInt64, _ to: UInt64) -> HistoryOperation {
    HistoryOperation(
      process: 2, key: Workload.counters[0], call: .read, invocation: from,
      outcome: .completed(.value(value), at: to))
  }

  // The bounds of the log met their deadline beside many busy processes, and the worker ended.
  @Test("A call of a worker's set-up is made again until its turn has come, while the run lasts")
  func insisting() throws {
    let place = try TemporaryDirectory()
    let directory = RunDirectory(path: place.path + "/run")
    try directory.create()
    let recorder = try Recorder(directory, life: 1, .logs)
    func failure(_ code: WormholeError.Code) -> WormholeError {
      WormholeError(code, "set the bounds", path: "x", reason: "it is a test")
    }
    var tries = 0
    try recorder.insisting(until: bootTimeNanoseconds()) {
      tries += 1
      if tries < 3 { throw failure(.timedOut) }
    }
    #expect(tries == 3)
    for (code, end) in [(WormholeError.Code.timedOut, 0), (.damaged, bootTimeNanoseconds())] {
      let error = #expect(throws: WormholeError.self) {
        try recorder.insisting(until: end) { throw failure(code) }
      }
      #expect(error?.code == code)
    }
  }

  @Test("a lost update")
  func lostUpdate() {
    let correct = [increment(nil, at: 10), increment(1, at: 20)]
    #expect(failed(checks(correct, last: 2)) == [])
    #expect(failed(checks(correct, last: 1)) == ["no update is lost"])
    // Two increments that began with the same value.
    let lost = failed(checks([increment(nil, at: 10), increment(nil, at: 20)], last: 1))
    #expect(lost.contains("no update is lost"))
    #expect(lost.contains("reads, writes, updates and compare-and-sets are linearizable"))
  }

  @Test("no loss in an increment that was cut short, whichever way it went")
  func cutShort() {
    let operations = [increment(nil, at: 10), increment(1, at: 20, finished: false)]
    #expect(failed(checks(operations, last: 1)) == [])
    #expect(failed(checks(operations, last: 2)) == [])
    #expect(failed(checks(operations, last: 3)) == ["no update is lost"])
  }

  @Test("an observer that receives the older value last")
  func backwards() {
    let operations = [increment(nil, at: 10), increment(1, at: 20)]
    let observed = [read(2, 30, 40), read(1, 40, 50)]
    #expect(
      failed(checks(operations, observed: observed, last: 2)) == [
        "observers receive the published values in order", "no reader goes backwards",
      ])
  }

  @Test("a value that was never published")
  func unpublished() {
    let failures = failed(
      checks([increment(nil, at: 10)], observed: [read(7, 30, 40)], last: 1))
    #expect(failures.contains("only published values are read"))
  }

  // MARK: Contents

  @Test("a value that is torn, mixed or another's", arguments: [Workload.counters[0], "large"])
  func torn(key: String) throws {
    let whole = Content.make(7, for: key)
    #expect(try Content.number(whole, in: key) == 7)
    #expect(throws: Content.Torn.self) { try Content.number(whole, in: "register/0") }
    for part in ["number", "sum", "key"] {
      var torn = whole
      torn[part] = Content.make(8, for: "single/1")[part]
      #expect(throws: Content.Torn.self) { try Content.number(torn, in: key) }
    }
    guard Workload.isLarge(key) else { return }
    var mixed = whole
    mixed["filler"] = Content.make(8, for: key)["filler"]
    #expect(throws: Content.Torn.self) { try Content.number(mixed, in: key) }
    mixed["filler"] = nil
    #expect(throws: Content.Torn.self) { try Content.number(mixed, in: key) }
  }

  // MARK: Notifications

  @Test("a post that a check missed, and one that it invented")
  func posts() {
    func failures(_ heard: Bool, _ posts: [JournalEntry]) -> [String] {
      var records = Records()
      let checks: [JournalEntry] = [
        .checked(name: "b", from: 10, to: 20, heard: true),
        .checked(name: "b", from: 50, to: 60, heard: heard),
      ]
      records.posts = posts.operations(of: 1)
      records.journals = [Journal(life: 2, entries: checks)]
      return failed(JournalChecks(records: records).all)
    }
    let promise = ["a check reports whether there was a post since the last check"]
    let between: [JournalEntry] = [
      .began(key: "b", .write(nil), at: 30), .answered(.done, at: 40),
    ]
    #expect(failures(true, between) == [])
    #expect(failures(false, between) == promise)
    #expect(failures(false, []) == [])
    #expect(failures(true, []) == promise)
    // An interrupted post may be reported at any later time, or never.
    let cut: [JournalEntry] = [.began(key: "b", .write(nil), at: 5)]
    #expect(failures(true, cut) == [])
    #expect(failures(false, cut) == [])
  }

  @Test("complaints of a worker in its journal, as far as it was written")
  func journal() throws {
    let entries: [JournalEntry] = [
      .did("large replace"), .retried, .lost, .timedOut, .broke(.inTime, "it took\n9 s"),
      .broke(.whole, "half"), .broke(.together, "2, then 1"), .broke(.noFault, "no"),
      .began(key: "b", .write(nil), at: 1), .answered(.done, at: 2),
      .checked(name: "b", from: 3, to: 4, heard: false),
    ]
    let text = try entries.map { try $0.line }.joined()
    #expect(JournalEntry.parse(text) == entries)
    let last = try JournalEntry.broke(.whole, "it was killed").line
    #expect(JournalEntry.parse(text + last.dropLast(5)) == entries)

    var records = Records()
    records.journals = [Journal(life: 1, entries: JournalEntry.parse(text))]
    #expect(
      failed(JournalChecks(records: records).all) == [
        "no value is torn or mixed", "several values change in one step",
        "no wait goes beyond its deadline",
        "no operation fails for another reason",
      ])
  }

  // MARK: Leftovers

  @Test("leftovers in a value's directory, and those that the sweep could not remove")
  func leftovers() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/container"
    try makeDirectory(path)
    let container = try SharedContainer(path: path)
    try container.value("v").replace(with: 1)
    try container.notification("n").post()
    let leftovers = Leftovers(directory: RunDirectory(path: directory.path))
    let clean = try leftovers.check(container)
    #expect(clean.holds, "\(clean.evidence)")
    try makeDirectory(path + "/values/v/lease/strange")
    let littered = try leftovers.check(container)
    #expect(littered.evidence == ["values/v/lease/strange"])
  }
}
