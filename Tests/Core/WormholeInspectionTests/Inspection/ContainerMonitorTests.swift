import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeEtcd
@testable import WormholeInspection
@testable import WormholeSystem

@Suite("A monitor reports what happens in a container", .blocking, .bothEngines)
struct ContainerMonitorTests {
  /// What a monitor has reported, in short: "jobs changed a".
  private final class Recorder: Sendable {
    private let lines = Mutex<[String]>([])

    func add(_ event: ContainerEvent) {
      let sender: String? = if case .sender(let name) = event.author { name } else { nil }
      let words = [event.name, event.change.rawValue, sender]
      lines.withLock { $0.append(words.compactMap { $0 }.joined(separator: " ")) }
    }

    func contains(_ line: String) -> Bool { lines.withLock { $0.contains(line) } }
    var all: [String] { lines.withLock { $0 } }
  }

  private let directory: TemporaryDirectory
  private let received = Recorder()

  init() throws { directory = try TemporaryDirectory() }

  private func monitor(_ container: SharedContainer) throws -> any Watching {
    try container.monitor { [received] in received.add($0) }
  }

  private func sees(_ line: String) throws {
    try eventually("it reports: \(line); not only \(received.all)") { received.contains(line) }
  }

  @Test("Entries that are sent, taken, processed or cancelled, each with its sender")
  func queue() throws {
    let container = try directory.container()
    let monitor = try monitor(container)
    let jobs = container.queue("jobs")
    let sender = try jobs.sender("a")
    let times = { [received] in received.all.count { $0 == "jobs changed a" } }
    try sender.enqueue(1)
    try sees("jobs changed a")
    let consumer = try jobs.consume()
    try sees("jobs entered")
    let first = try #require(try consumer.next(until: soon))
    try eventually("it reports that it was taken: \(received.all)") { times() == 2 }
    try first.acknowledge()
    try eventually("it reports that it was processed: \(received.all)") { times() == 3 }
    consumer.close()
    try sees("jobs left")
    let id = try sender.enqueue(2, keepsReceipt: true)
    try eventually("it reports the next one: \(received.all)") { times() == 4 }
    _ = try sender.cancel(id)
    try eventually("it reports that it was cancelled: \(received.all)") { times() == 5 }
    monitor.cancel()
  }

  @Test("A message that is appended to a log")
  func log() throws {
    let container = try directory.container()
    let monitor = try monitor(container)
    let log = container.log("history")
    for number in 1...2 { #expect(try log.append("text") == number) }
    try sees("history appended")
    try eventually("it reports both: \(received.all)") {
      received.all.count { $0 == "history appended" } == 2
    }
    monitor.cancel()
  }

  @Test("After it was cancelled it reports nothing")
  func cancelled() throws {
    let container = try directory.container()
    let (first, second) = (try monitor(container), try container.monitor { _ in })
    try container.value("a").replace(with: 1)
    try sees("a changed")
    first.cancel()
    try container.value("b").replace(with: 1)
    let other = Recorder()
    let third = try container.monitor { other.add($0) }
    try container.value("c").replace(with: 1)
    try eventually("another one goes on") { other.contains("c changed") }
    #expect(!received.contains("b changed") && !received.contains("c changed"))
    withExtendedLifetime((second, third)) {}
  }

  // It used to remember each directory that was removed, and what had been in it; and it used a thread
  // for each directory when it compared them all, once a minute.
  @Test(
    "It remembers nothing of what is gone, and looks in one lane",
    .onlyDirectories("on etcd it keeps the revision of each key"))
  func remembersNothing() throws {
    let container = try directory.container()
    let monitor = DirectoryMonitor(of: container, isNew: false) { _ in }
    defer { monitor.cancel() }
    for round in 1...3 {
      let name = "round-\(round)"
      let queue = container.queue(name)
      let sender = try queue.sender(name)
      for number in 0..<2 { try sender.enqueue(.integer(Int64(number)), keepsReceipt: true) }
      let consumer = try queue.consume()
      monitor.look()
      try consumer.next(until: soon)?.fail("no")
      try consumer.next(until: soon)?.acknowledge()
      consumer.close()
      try container.notification(name).post()
      try container.value(name).replace(with: 1)
      try container.log(name).append(1)
      try container.presence(name).enter().close()
      try eventually("it has seen them") {
        monitor.look()
        // It is 10 if the look before saw no entry while it waited.
        return monitor.remembered >= 10
      }
      let child = try ChildProcess("sh", ["-c", "rm -r '\(directory.path)'/*/\(name)"])
      #expect(try child.wait(until: soon) == .exited(0))
      try eventually("it remembers nothing of them, not \(monitor.remembered)") {
        monitor.look()
        return monitor.remembered == 0
      }
    }
    let lanes = ChangeMonitor.shared.state.withLock { $0.lanes(below: directory.path + "/") }
    #expect(lanes.count == 1, "\(lanes)")
  }

  // A monitor that reported a peer before it watched the peer's queue missed entries of processes
  // that had waited for the peer.
  @Test(
    "It reports only once it watches all directories that were there",
    .onlyDirectories("on etcd one watch has all keys"))
  func reportsLast() throws {
    let container = try directory.container()
    let names = ["a", "b", "c"]
    for name in names { try container.queue(name).sender("d").enqueue(1) }
    let members = try names.map { try container.presence($0).enter() }
    let unwatched = Mutex<[String]>([])
    let monitor = DirectoryMonitor(of: container, isNew: true) { [directory] event in
      let queues = names.map { "\(directory.path)/queues/\($0)/pending" }
      // `try?`, because a directory that cannot be looked for counts as unwatched, and the test fails.
      let missing = queues.filter { (try? KernelWatches.contain($0)) != true }
      unwatched.withLock { $0 += missing + [event.change.rawValue] }
    }
    defer { monitor.cancel() }
    let found = Set(unwatched.withLock { $0 })
    #expect(found == ["changed", "entered"])
    withExtendedLifetime(members) {}
  }

  @Test("What was there before is not reported, and neither is what is still as it was")
  func known() throws {
    let container = try directory.container()
    try container.value("a").replace(with: 1)
    try container.own.value("b").replace(with: 1)
    let member = try container.presence("c").enter()
    let monitor = try monitor(container)
    member.close()
    try sees("c left")
    #expect(received.all == ["c left"])
    monitor.cancel()
  }

  @Test("Keys that anybody has put are no harm")
  func hostileKeys() throws {
    guard TestEngine.current == .etcd else { return }
    let container = try directory.container()
    guard let etcd = container.engine as? EtcdContainer else { return }
    let monitor = try monitor(container)
    let prefix = Array(etcd.formatKey.dropLast("format".utf8.count))
    let names = [
      "", "/", "v/", "v//", "v/%2", "v/%2f", "own", "own/", "own/own/v/x", "p/x/m/1", "p/x/m/",
      "c//m", "q/x/e/y", "q/x/e/0000000000000001-a-1-5.plist", "q/x/d/0000000000000001-a-1-5.plist",
      "q/x/o/a/0000000000000001-a-1-5.plist.0", "q/x/f/0000000000000001-a-1-5.plist.0", "q/x/o",
      "b/x/0000000000000001-a-1-5.plist", "b", "n/\u{0}", "z/z/z/z", "s/x", "p/x/last",
    ]
    func change(_ operation: EtcdTransaction.Operation) throws {
      let always = EtcdTransaction.Condition.version(of: etcd.formatKey, -1, is: .greater)
      _ = try etcd.until(soon).repeating(EtcdTransaction(if: [always], then: [operation]))
    }
    for value in [[], [0], Array(repeating: UInt8(ascii: "("), count: 100)] as [[UInt8]] {
      for name in names { try change(.put(key: prefix + Array(name.utf8), value: value)) }
      try change(.put(key: prefix + [0xFF, 0x2F, 0xC0], value: value))
    }
    try change(.delete(.prefix(prefix + Array("q/".utf8))))
    try container.value("good").replace(with: 1)
    try sees("good changed")
    monitor.cancel()
  }

  @Test(
    "After a compaction it reports what a listing shows to be different",
    .onlyDirectories("no container is needed"))
  func compaction() {
    let item = { (name: String, revision: Int64) in
      KeyValue(
        key: Array("c/\(name)".utf8), value: Array(repeating: 7, count: 20), created: 1,
        modified: revision, version: 1, lease: 0)
    }
    let received = Recorder()
    var keys = EtcdKeys(Array("c/".utf8), isNew: false) { received.add($0) }
    let list = { (keys: inout EtcdKeys, items: [KeyValue], values: [KeyValue], revision: Int64) in
      keys.take(values, of: items, at: EtcdMoment(history: 0, revision: revision))
    }
    let first = [item("v/a", 5), item("v/b", 6), item("v/d", 7)]
    list(&keys, first, keys.unread(in: first), 7)
    #expect(received.all.isEmpty)
    let listing = [item("v/a", 9), item("v/d", 7), item("v/e", 8), item("n/done", 10)]
    let changed = keys.unread(in: listing)
    #expect(changed.map(\.modified) == [9, 8, 10])
    list(&keys, listing, changed, 10)
    // An older listing adds nothing, and neither does what the newer one has shown.
    list(&keys, first, first, 8)
    keys.take([EtcdEvent(kind: .put, keyValue: item("v/a", 9))], of: 0)
    keys.take([EtcdEvent(kind: .put, keyValue: item("v/a", 11))], of: 1)
    let names = received.all.map { $0.split(separator: " ").prefix(2).joined(separator: " ") }
    #expect(names.sorted() == ["a changed", "b removed", "done posted", "e changed"])
  }
}

extension DirectoryMonitor {
  /// The size of its memory of names.
  fileprivate var remembered: Int {
    scan.withLock { $0.seen.values.filter { $0.owner != nil }.reduce(0) { $0 + $1.size } }
  }
}

extension DirectoryScan.Seen {
  fileprivate var size: Int { 1 + entries.count + members.count + (checks == nil ? 0 : 1) }
}
