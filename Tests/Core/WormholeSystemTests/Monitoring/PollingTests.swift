import Synchronization
import Testing
import WormholeTestSupport

@testable import WormholeSystem

@Suite("The change monitor, where it gets no watch,", .blocking)
struct PollingTests: MonitorScene {
  let directory: TemporaryDirectory
  let monitor = ChangeMonitor()

  init() throws { directory = try TemporaryDirectory() }

  @Test("polls a directory that it cannot watch, beside its watches, until it can")
  func pollsAndRecovers() throws {
    #if DEBUG
      let healthy = monitor.watch(path: try make("a"), parents: [], prepare: {}, hear: { _ in })
      let path = try make("b")
      let signals = Heard<Int>()
      let none = Faults.Plan { call, _ in
        call == .inotifyAddWatch ? .fail(.noSpace) : .proceed
      }
      let polled = Faults.$plan.withValue(none) {
        monitor.watch(path: path, parents: [], prepare: {}, hear: { _ in signals.add(1) })
      }
      #expect(polled.detection != .events)
      try eventually("it is looked at") { !signals.all.isEmpty }
      try eventually("it is watched as soon as there is a watch") {
        try KernelWatches.contain(path)
      }
      withExtendedLifetime((healthy, polled)) {}
    #endif
  }

  @Test(
    "is silent about what it polls without an instance as long as the times show no change",
    .waiting, arguments: [nil, WatchEvents.names, .content])
  func pollsTimes(_ events: WatchEvents?) throws {
    #if DEBUG
      let path = try make("a")
      try touch(path, "file")
      let signals = Heard<Int>()
      let none = Faults.Plan { call, _ in call == .inotifyInit ? .fail(.tooManyOpenFiles) : .proceed
      }
      let watch = try Faults.$plan.withValue(none) {
        if let events {
          return monitor.watch(
            path: path, parents: [], events, showsInFiles: true, prepare: {},
            hear: { _ in signals.add(1) })
        }
        return try monitor.watchOpen(
          FileDescriptor.open(path, [.pathOnly, .directory]), [.attributes, .selfDeleted]
        ) { _ in signals.add(1) }
      }
      #expect(watch.detection != .events)
      for _ in 0..<2 {
        try eventually("its last change is old enough to see the next one") {
          monitor.state.withLock { $0.entries.values.first?.seen != nil }
        }
        let (heard, wakeUps) = (signals.all.count, monitor.statistics.wakeUps)
        try eventually("it was looked at") { monitor.statistics.wakeUps > wakeUps + 8 }
        #expect(signals.all.count <= heard + 1, "one may have been on its way")
        let before = signals.all.count
        if events == .content {
          // In place, as a shell's redirection does.
          let file = try FileDescriptor.open(path + "/file", [.writeOnly])
          try file.writeAll(Array("\(heard)".utf8))
        } else {
          try touch(path, "\(heard)")
        }
        try eventually("a change is reported") { signals.all.count > before }
      }
      withExtendedLifetime(watch) {}
    #endif
  }

  @Test("is silent about what is missing without an instance, until it appears", .waiting)
  func appears() throws {
    #if DEBUG
      let parent = try make("a")
      let signals = Heard<Int>()
      let none = Faults.Plan { call, _ in call == .inotifyInit ? .fail(.tooManyOpenFiles) : .proceed
      }
      let watch = Faults.$plan.withValue(none) {
        monitor.watch(
          path: parent + "/b/c", parents: [directory.path, parent, parent + "/b"],
          showsInFiles: true, prepare: {}, hear: { _ in signals.add(1) })
      }
      try eventually("its parent's last change is old enough to see the next one") {
        monitor.state.withLock { $0.entries.values.first?.seen != nil }
      }
      let (heard, wakeUps) = (signals.all.count, monitor.statistics.wakeUps)
      try eventually("it was looked at") { monitor.statistics.wakeUps > wakeUps + 8 }
      #expect(signals.all.count <= heard + 1, "one may have been on its way")
      let before = signals.all.count
      _ = try make("a/b")
      _ = try make("a/b/c")
      try eventually("it is reported") { signals.all.count > before }
      withExtendedLifetime(watch) {}
    #endif
  }

  @Test("looks no more often at what it polls than its watch asks for")
  func pollInterval() {
    let target = WatchEntry.Target(path: "/a", parents: [], pollInterval: .seconds(1), prepare: {})
    var entry = WatchEntry(target, events: [.movedTo], hear: { _ in })
    #expect(entry.interval == ChangeMonitor.pollInterval)
    entry.detection = .polling(reason: "no instance")
    #expect(entry.interval == .seconds(1))
  }

  @Test("takes little of a table with a hundred thousand entries")
  func memory() { #expect(MemoryLayout<WatchEntry>.stride <= 320) }

  @Test("looks less often while its looks come late, because others look as often")
  func late() {
    let target = WatchEntry.Target(path: "/a", parents: [], prepare: {})
    var entry = WatchEntry(target, events: [.movedTo], hear: { _ in })
    entry.detection = .polling(reason: "no instance")
    let begin = ContinuousClock.now
    entry.planLook(now: begin)
    #expect(entry.nextLook == begin + .milliseconds(200))
    var now = begin + .milliseconds(700)
    for seconds in [2, 1, 0.5, 0.25, 0.2] {
      entry.planLook(now: now)
      #expect(entry.nextLook == now + .seconds(seconds), "half a second late, then in time")
      now = entry.nextLook ?? now
    }
    entry.planLook(now: now + .seconds(60))
    #expect(entry.nextLook == now + .seconds(60) + ChangeMonitor.calmInterval)
  }
}
