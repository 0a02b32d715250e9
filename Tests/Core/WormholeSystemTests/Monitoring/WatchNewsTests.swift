import Synchronization
import Testing
import Wormhole
import WormholeTestSupport

@testable import WormholeSystem

@Suite("A watch with named events", .blocking)
struct WatchNewsTests {
  let directory: TemporaryDirectory
  let monitor = ChangeMonitor()

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func touch(_ name: String) throws {
    try FileDescriptor.open(directory.path + "/" + name, [.writeOnly, .create]).close()
  }

  private func watch(
    _ events: WatchEvents, _ heard: Heard<WatchNews>
  ) throws -> Watch {
    let open = try FileDescriptor.open(directory.path, [.pathOnly, .directory])
    return monitor.watchOpen(open, events, hear: { heard.add($0) })
  }

  @Test("names the entries, each with its events, and reports nothing else")
  func names() throws {
    let heard = Heard<WatchNews>()
    let creations = Heard<WatchNews>()
    let watch = try watch([.created, .deleted, .attributes], heard)
    // The kernel's mask for the directory is the union of both masks.
    let other = try self.watch([.created], creations)
    try touch("a")
    try removeFile(directory.path + "/a")
    try touch("b")
    try FileDescriptor.open(directory.path, [.readOnly, .directory]).setPermissions(0o500)
    try eventually("all is reported") {
      heard.all.contains { $0.own.contains(.attributes) }
        && creations.all.contains { $0.names[name("b")] != nil }
    }
    var all = WatchNews()
    for news in heard.all { all.merge(news) }
    #expect(all.names[name("a")] == [.created, .deleted])
    #expect(all.names[name("b")] == [.created])
    #expect(!all.isEverything)
    var created = WatchNews()
    for news in creations.all { created.merge(news) }
    #expect(created.names == [name("a"): [.created], name("b"): [.created]])
    #expect(created.own.isEmpty)
    withExtendedLifetime((watch, other)) {}
  }

  private func name(_ text: String) -> FileName { FileName(bytes: Array(text.utf8)) }

  @Test("has reported all earlier events before it makes a call that must follow them")
  func afterEvents() throws {
    let heard = Heard<WatchNews>()
    let calls = Heard<Set<FileName>>()
    let watch = try watch([.created], heard)
    for round in 0..<10 {
      let names = Set((0..<10).map { name("\(round)-\($0)") })
      for name in names { try touch(name.text) }
      monitor.afterEvents { calls.add(names.subtracting(heard.all.flatMap(\.names.keys))) }
      try eventually("it is called") { calls.all.count == round + 1 }
    }
    #expect(calls.all == Array(repeating: [], count: 10))
    withExtendedLifetime(watch) {}
  }

  @Test("does so even if both come after its thread has found no events")
  func afterLateEvents() throws {
    let heard = Heard<WatchNews>()
    let calls = Heard<[FileName]>()
    let open = try FileDescriptor.open(directory.path, [.pathOnly, .directory])
    // It has no thread; this thread runs its iteration.
    _ = monitor.insert(WatchEntry(nil, events: [.created]) { heard.add($0) }, open: open)
    try touch("a")
    monitor.state.withLock { $0.add { calls.add(heard.all.flatMap(\.names.keys)) } }
    monitor.handle(ready: [false, true], now: .now)
    #expect(calls.all == [[name("a")]])
  }

  @Test("requests a complete look if events are not available")
  func polled() throws {
    #if DEBUG
      let heard = Heard<WatchNews>()
      let plan = Faults.Plan { call, _ in call == .inotifyAddWatch ? .fail(.noSpace) : .proceed }
      let polling: Watch = try Faults.$plan.withValue(plan) { try self.watch([.created], heard) }
      #expect(polling.detection != ChangeDetection.events)
      try eventually("it is reported") { heard.all.contains { $0.isEverything } }
      polling.cancel()
    #endif
  }
}
