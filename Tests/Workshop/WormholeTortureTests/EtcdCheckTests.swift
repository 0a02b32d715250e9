import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeEtcd
@testable import WormholeTorture

@Suite("The checks of the torture program on etcd", .blocking)
struct EtcdCheckTests {
  // MARK: Outcomes

  private func journal(
    of code: WormholeError.Code, _ call: HistoryOperation.Call = .write(7), isAlone: Bool = false
  ) throws -> [JournalEntry] {
    let directory = RunDirectory(
      path: try TemporaryDirectory().path + "-run", etcd: "etcd://127.0.0.1/x")
    try directory.create()
    let recorder = try Recorder(directory, life: 1, .values, isAlone: isAlone)
    _ = try recorder.perform("replace", key: "register/0", call: call, patience: .seconds(1)) {
      throw WormholeError(code, "change the value", path: "x", reason: "it is a test")
    }
    let records = try Records(directory, lives: 1)
    try removeTree(directory.path)
    return records.journals.flatMap(\.entries)
  }

  @Test("take an unknown outcome for an operation without an answer, and no other error")
  func unknownOutcome() throws {
    let unknown = try journal(of: .outcomeUnknown)
    #expect(unknown.operations(of: 1).map(\.outcome) == [.unknown])
    #expect(unknown.contains(.inDoubt))
    for (code, entry) in [(WormholeError.Code.clusterUnreachable, JournalEntry.unreachable)]
      + [(.leaseLost, .lost), (.timedOut, .timedOut)]
    {
      let journal = try journal(of: code)
      #expect(journal.operations(of: 1) == [])
      #expect(journal.contains(entry))
      #expect(!journal.contains { if case .broke = $0 { true } else { false } })
    }
  }

  // They used to be tolerated as those of a worker, so that a value that cannot be changed any more
  // went unnoticed.
  @Test(
    "take any error of the last changes for a fault",
    arguments: [WormholeError.Code.timedOut, .leaseLost, .clusterUnreachable, .outcomeUnknown])
  func lastChanges(code: WormholeError.Code) throws {
    let journal = try journal(of: code, isAlone: true)
    #expect(journal.contains { if case .broke(.noFault, _) = $0 { true } else { false } })
  }

  @Test("find a message that was delivered, though it was reported as not stored")
  func unsent() {
    func holds(_ events: Delivery.Event...) -> Bool {
      let deliveries = ([.sending(slot: 0)] + events).map {
        Delivery(place: "q", number: 1, event: $0)
      }
      return DeliveryChecks("message", [deliveries]).all().allSatisfy(\.holds)
    }
    let taken = Delivery.Event.taken(epoch: "a", slot: 0, isRedelivery: false, from: 1, to: 2)
    #expect(holds(.unsent))
    #expect(holds(taken))
    #expect(!holds(.unsent, taken))
  }

  @Test("allow a post without an end, after which others come, to be heard")
  func openPosts() throws {
    let directory = try TemporaryDirectory()
    let run = RunDirectory(path: directory.path + "/run")
    try run.create()
    let recorder = try Recorder(run, life: 1, .values)
    let post = JournalEntry.began(key: Workload.notifications[0], .write(nil), at: 1)
    for entry in [post, post] { try recorder.note(entry) }
    #expect(try Records(run, lives: 1).posts.map(\.outcome) == [.unknown, .unknown])
    // The last one was not made, because etcd did not answer.
    try recorder.note(.withoutEffect)
    #expect(try Records(run, lives: 1).posts.count == 1)
    #expect(try Records(run, lives: 1).operations == [])
  }

  // MARK: Observers and watches

  @Test("allow an observer to be behind, but not to go back")
  func observers() {
    let write = { (number: UInt64, time: UInt64) in
      HistoryOperation(
        process: 1, key: "register/0", call: .write(number), invocation: time,
        outcome: .completed(.done, at: time + 1))
    }
    var records = Records()
    records.operations = [write(1, 10), write(2, 20)]
    records.observations = [
      HistoryOperation(
        process: 2, key: "register/0", call: .read, invocation: 30,
        outcome: .completed(.value(1), at: 31))
    ]
    let late = HistoryChecks(records: records, last: [:])
    #expect(late.all.contains { !$0.holds })
    let onEtcd = HistoryChecks(records: records, last: [:], isOnEtcd: true)
    #expect(onEtcd.all.filter { !$0.holds }.map(\.promise) == [])
    for promise in [Promise.forwards, .everyChange] {
      records.journals = [Journal(life: 1, entries: [.broke(promise, "2, then 1")])]
      #expect(JournalChecks(records: records, isOnEtcd: true).all.count { !$0.holds } == 1)
    }
  }

  private func item(_ version: Int64, _ revision: Int64) -> KeyValue {
    KeyValue(
      key: Array("k".utf8), value: [], created: 1, modified: revision, version: version, lease: 0)
  }

  private func wrong(_ events: [(EtcdEvent.Kind, KeyValue)]) -> [JournalEntry] {
    var reported = ReportedChanges(
      .init(moment: .init(history: 0, revision: 10), items: [item(3, 9)]))
    return events.compactMap { reported.take(EtcdEvent(kind: $0.0, keyValue: $0.1)) }
  }

  @Test("find a change that a watch did not report, or reported too late")
  func watches() {
    #expect(wrong([(.put, item(4, 11)), (.delete, item(0, 12)), (.put, item(1, 13))]) == [])
    #expect(wrong([(.put, item(5, 12))]).count == 1)
    #expect(wrong([(.delete, item(0, 12)), (.put, item(2, 14))]).count == 1)
    #expect(wrong([(.delete, item(0, 12)), (.delete, item(0, 14))]).count == 1)
    #expect(wrong([(.put, item(4, 12)), (.put, item(5, 11))]).count == 1)
    let reported = ReportedChanges(
      .init(moment: .init(history: 0, revision: 10), items: [item(3, 9)]))
    #expect(!reported.lacks(.init(moment: .init(history: 0, revision: 11), items: [item(3, 9)])))
    #expect(reported.lacks(.init(moment: .init(history: 0, revision: 11), items: [item(4, 11)])))
    #expect(reported.lacks(.init(moment: .init(history: 0, revision: 11), items: [])))
  }

  // MARK: Leftovers

  @Test("know which keys stay")
  func leftovers() {
    let value = [UInt8](repeating: 1, count: 17)
    for key in [
      "format", "v/counter%2F0", "own/v/x", "n/done", "s/done", "p/here/last", "own/p/peer/h",
      "sweeps", "l/log", "l/log/h", "l/log/m/0000000000000001", "c/queue/last", "q/queue/s/slot-0",
      "q/queue/r/slot-0/x", "q/queue/o/slot-0/x.0",
    ] { #expect(Leftovers.belongs(key, value), "\(key)") }
    for key in [
      "p/here/m/4711", "p/here/x", "c/queue/m/4711", "q/queue/e/x", "q/queue/d/x", "q/queue/c/x",
      "q/queue/x/x", "b/address/o", "own/p/peer/m/1", "other",
    ] { #expect(!Leftovers.belongs(key, value), "\(key)") }
    // A value that was removed.
    #expect(!Leftovers.belongs("v/x", [UInt8](repeating: 1, count: 16)))
  }
}
