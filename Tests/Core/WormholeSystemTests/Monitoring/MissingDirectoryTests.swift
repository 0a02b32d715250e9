import Synchronization
import Testing
import WormholeTestSupport

@testable import WormholeSystem

@Suite("The change monitor, for a directory that is missing,", .blocking)
struct MissingDirectoryTests: MonitorScene {
  let directory: TemporaryDirectory
  let monitor = ChangeMonitor()

  init() throws { directory = try TemporaryDirectory() }

  // It used to create what it was to watch: looking left names behind.
  @Test("makes no directory, and reports one that appears, each time, whatever part was missing")
  func appears() throws {
    let parents = ["", "/a", "/a/b"].map { directory.path + $0 }
    let path = directory.path + "/a/b/c"
    let signals = Heard<Int>()
    let watch = monitor.watch(
      path: path, parents: parents, prepare: {}, hear: { _ in signals.add(1) })
    #expect(watch.detection == .events)
    #expect(try !exists(directory.path + "/a", at: Directory.current))
    for round in 1...3 {
      try settle()
      let before = signals.all.count
      for (index, name) in ["a", "a/b", "a/b/c"].enumerated() where index >= round - 1 {
        let heard = signals.all.count
        _ = try make("other-\(round)-\(index)")
        if index > 0 { _ = try make(parents[index].dropFirst(directory.path.count) + "/d\(round)") }
        #expect(signals.all.count == heard, "what else appears is no news")
        _ = try make(name)
        guard index < 2 else { continue }
        try eventually("a look follows each part, and then the next one is waited for") {
          try signals.all.count > heard && KernelWatches.contain(parents[index + 1])
        }
        try settle()
      }
      try eventually("it is reported") { signals.all.count > before }
      try eventually("it is watched") { try KernelWatches.contain(path) }
      try isHeard(path, "file", signals)
      let reported = signals.all.count
      // First it alone, then with its parent.
      try move("a/b/c", to: "gone-\(round)")
      if round == 1 { try move("a/b", to: "parent") }
      try eventually("its end is reported") { signals.all.count > reported }
      try eventually("the wait for it has begun, after the pause that a removal needs") {
        monitor.state.withLock { $0.isAwaiting(path) }
      }
    }
    watch.cancel()
    #expect(try !parents.contains { try KernelWatches.contain($0) })
  }

  /// Waits until all events so far were taken, their looks have ended, and the findings were heard.
  private func settle() throws {
    for _ in 1...2 {
      let heard = Awaited<Void>()
      monitor.afterEvents { heard.settle(()) }
      try #require(heard.wait(until: soon) != nil)
      try eventually("all looks have ended") { monitor.state.withLock { $0.lanesAtWork } == 0 }
    }
  }

  // The kernel reports the end of a directory itself only after its last descriptor is closed.
  @Test(
    "notices a removal while a process has the directory open, or one in it",
    arguments: ["a", "a/b", "a/b/c"], ["a/b", "a/b/c"])
  func heldOpen(open: String, watched: String) throws {
    let path = directory.path + "/" + watched
    let parents = ["", "/a", "/a/b"].map { directory.path + $0 }.filter { $0 != path }
    for name in ["a", "a/b", "a/b/c"] { _ = try make(name) }
    let signals = Heard<Int>()
    let watch = monitor.watch(
      path: path, parents: parents.filter(path.hasPrefix), prepare: {},
      hear: { _ in signals.add(1) })
    let descriptor = try FileDescriptor.open(
      directory.path + "/" + open, [.readOnly, .directory])
    for name in ["a/b/c", "a/b", "a"] {
      try removeDirectory(directory.path + "/" + name, at: Directory.current)
    }
    // Before the next comparison with the path, once a minute.
    try eventually("its end is reported", within: .seconds(20)) { !signals.all.isEmpty }
    for name in ["a", "a/b", "a/b/c"] { _ = try make(name) }
    try eventually("the new one is watched", within: .seconds(20)) {
      try KernelWatches.contain(path)
    }
    try settle()
    try isHeard(path, "file", signals)
    withExtendedLifetime(descriptor) {}
    watch.cancel()
  }

  @Test("notices the removal of an open directory whose parent is not watched, if it had an entry")
  func heldOpenAlone() throws {
    let path = try make("a")
    try touch(path)
    let signals = Heard<Int>()
    let watch = monitor.watch(path: path, parents: [], prepare: {}, hear: { _ in signals.add(1) })
    let descriptor = try FileDescriptor.open(path, [.readOnly, .directory])
    try removeTree(path)
    _ = try make("a")
    try eventually("the new one is watched", within: .seconds(20)) {
      try KernelWatches.contain(path)
    }
    try settle()
    try isHeard(path, "file", signals)
    withExtendedLifetime(descriptor) {}
    watch.cancel()
  }

  @Test("notices that a container was removed and made again while its process has it open")
  func containerMadeAgain() throws {
    let container = try make("c")
    let parents = [container, container + "/values"]
    let path = parents[1] + "/k"
    let signals = Heard<Int>()
    let watch = monitor.watch(
      path: path, parents: parents, prepare: {}, hear: { _ in signals.add(1) })
    for round in 1...2 {
      let descriptor = try FileDescriptor.open(container, [.readOnly, .directory])
      try touch(container, "container.plist")
      try settle()
      try removeTree(container)
      _ = try make("c")
      try eventually("the new one is watched", within: .seconds(20)) {
        try KernelWatches.contain(container)
      }
      withExtendedLifetime(descriptor) {}
      try settle()
      for directory in ["c/values", "c/values/k"] { _ = try make(directory) }
      try eventually("it is watched", within: .seconds(20)) { try KernelWatches.contain(path) }
      try settle()
      try isHeard(path, "file", signals)
      if round == 1 {
        try move("c", to: "gone")
        _ = try make("c")
        try eventually("the new one is watched", within: .seconds(20)) {
          try KernelWatches.contain(container)
        }
      }
    }
    watch.cancel()
  }

  @Test("notices the replacement of a parent directory that it had to create")
  func parents() throws {
    let signals = Heard<Int>()
    let above = directory.path + "/made"
    let path = above + "/k"
    let watch = monitor.watch(path: path, parents: [directory.path, above]) {
      for each in [above, path] {
        do throws(Errno) { try makeDirectory(each) } catch {
          guard error == .alreadyExists else { throw error }
        }
      }
    } hear: { _ in
      signals.add(1)
    }
    try rename(
      above, at: Directory.current, to: directory.path + "/old", at: Directory.current)
    try eventually("it is signalled", within: .seconds(10)) { !signals.all.isEmpty }
    withExtendedLifetime(watch) {}
  }
}
