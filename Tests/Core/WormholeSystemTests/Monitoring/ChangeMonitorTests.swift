import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeInspection
@testable import WormholeSystem

@Suite("The change monitor", .blocking)
struct ChangeMonitorTests: MonitorScene {
  let directory: TemporaryDirectory
  let monitor = ChangeMonitor()

  init() throws { directory = try TemporaryDirectory() }

  @Test("wakes only for the names that are watched: 1,000 idle observers cost nothing")
  func idleObservers() throws {
    let signals = Heard<Int>()
    var watches: [Watch] = []
    for index in 0..<1_000 {
      let path = try make("watched-\(index)")
      watches.append(
        monitor.watch(path: path, parents: [], prepare: {}, hear: { _ in signals.add(index) }))
    }
    let other = try make("other")
    try touch(directory.path + "/watched-7")
    try eventually("the watched one is signalled") { signals.all.contains(7) }
    try eventually("its events are over") {
      let before = monitor.statistics.wakeUps
      pauseThread(.milliseconds(20))
      return monitor.statistics.wakeUps == before
    }
    let before = monitor.statistics.wakeUps
    for index in 0..<500 { try touch(other, "file-\(index)") }
    // An earlier wake-up would have come before this signal, whose event follows those.
    try touch(directory.path + "/watched-8")
    try eventually("the watched one is signalled") { signals.all.contains(8) }
    #expect(monitor.statistics.wakeUps - before <= 3, "one for each of the events of a touch")
    #expect(Set(signals.all) == [7, 8])
    #expect(monitor.statistics.watches == 1_000)
    watches.removeAll()
    #expect(monitor.statistics.watches == 0)
  }

  @Test("signals all observers when the kernel's queue has overflowed")
  func overflow() throws {
    let noisy = [try make("a"), try make("b")]
    let quiet = try make("quiet")
    let gate = DispatchSemaphore(value: 0)
    let blocked = Atomic(false)
    let signals = Heard<Int>()
    var watches: [Watch] = []
    for path in noisy {
      watches.append(
        monitor.watch(path: path, parents: [], prepare: {}) { _ in
          // The monitor's thread is held here, so that the events stay in the queue.
          if !blocked.exchange(true, ordering: .sequentiallyConsistent) { gate.wait() }
        })
    }
    watches.append(
      monitor.watch(path: quiet, parents: [], prepare: {}, hear: { _ in signals.add(1) }))
    try touch(noisy[0])
    try eventually("the thread is held") { blocked.load(ordering: .sequentiallyConsistent) }
    // Alternating, because the kernel merges equal events in a row; more than max_queued_events.
    for _ in 0..<9_000 {
      for path in noisy { try touch(path) }
    }
    try touch(quiet)
    // Also lost: another directory takes its place.
    try move("quiet", to: "elsewhere")
    _ = try make("quiet")
    gate.signal()
    try eventually("an observer whose event was lost is signalled") { !signals.all.isEmpty }
    for number in 1...3 {
      let before = signals.all.count
      try touch(quiet, "\(number)")
      try eventually("the directory that is there now is watched") { signals.all.count > before }
    }
    withExtendedLifetime(watches) {}
  }

  @Test("gives observers of one directory one watch, and frees it with the last")
  func sharedWatch() throws {
    let path = try make("a")
    let signals = Heard<Int>()
    let first = monitor.watch(path: path, parents: [], prepare: {}, hear: { _ in signals.add(1) })
    var second: Watch? = monitor.watch(
      path: path, parents: [], prepare: {}, hear: { _ in signals.add(2) })
    withExtendedLifetime(second) {}
    second = nil
    try touch(path)
    try eventually("the one that is left is signalled") { signals.all.contains(1) }
    #expect(!signals.all.contains(2))
    first.cancel()
    #expect(monitor.statistics.watches == 0)
  }

  @Test("wakes a waiter for a lock when its holder closes it or is killed")
  func lockIsClosed() throws {
    let path = try make("lock")
    let latch = WakeLatch()
    let own = try FileDescriptor.open(path, [.readOnly, .directory])
    let script =
      "import fcntl,os; fcntl.flock(os.open('\(path)', 0), 2); print(1, flush=True); input()"
    let output = try makePipe()
    let input = try makePipe()
    let holder = try ChildProcess(
      "python3", ["-c", script], input: input.read.rawValue, output: output.write.rawValue)
    #expect(try waitReadable([output.read.rawValue], until: soon) == [true])
    #expect(try !own.tryLock(.exclusive))
    let watch = monitor.watchOpen(own, [.closedWithoutWriting]) { _ in latch.raise() }
    try holder.send(.kill)
    _ = try holder.wait(until: soon)
    // Bounded by its deadline; the result shows that the wake-up came.
    latch.block(until: .now + .seconds(20))
    try eventually("the lock is free") { try own.tryLock(.exclusive) }
    withExtendedLifetime(watch) {}
  }

  /// Touches a directory and waits until that is signalled.
  @Test("watches a directory for itself and as the parent of another, independently")
  func parentToo() throws {
    let parent = try make("a")
    let child = try make("a/b")
    let (own, below) = (Heard<Int>(), Heard<Int>())
    let first = monitor.watch(path: parent, parents: [], prepare: {}, hear: { _ in own.add(1) })
    let second = monitor.watch(
      path: child, parents: [parent], prepare: {}, hear: { _ in below.add(1) })
    try isHeard(parent, "1", own)
    let open = try FileDescriptor.open(parent, [.readOnly, .directory])
    let third = monitor.watchOpen(open, [.closedWithoutWriting]) { _ in }
    try isHeard(parent, "2", own)
    third.cancel()
    let fourth = monitor.watch(path: child, parents: [parent], prepare: {}, hear: { _ in })
    fourth.cancel()
    #expect(try KernelWatches.contain(parent) && KernelWatches.contain(child))
    first.cancel()
    #expect(try KernelWatches.contain(parent), "for its own removal")
    let again = monitor.watch(path: parent, parents: [], prepare: {}, hear: { _ in own.add(1) })
    second.cancel()
    #expect(try !KernelWatches.contain(child))
    try isHeard(parent, "3", own)
    again.cancel()
    #expect(try !KernelWatches.contain(parent))
  }

  @Test("finds the watched directory in each replacement of its parent")
  func parentReplaced() throws {
    let parent = try make("a")
    let child = try make("a/b")
    let signals = Heard<Int>()
    let watch = monitor.watch(
      path: child, parents: [parent], prepare: {}, hear: { _ in signals.add(1) })
    for number in 1...3 {
      _ = try make("new-\(number)")
      _ = try make("new-\(number)/b")
      let before = signals.all.count
      try move("a", to: "old-\(number)")
      try move("new-\(number)", to: "a")
      try eventually("the replacement is reported, without any other event") {
        signals.all.count > before
      }
      try eventually("the new ones are watched") {
        try KernelWatches.contain(child) && KernelWatches.contain(parent)
      }
      #expect(try !KernelWatches.contain(directory.path + "/old-\(number)"))
      #expect(try !KernelWatches.contain(directory.path + "/old-\(number)/b"))
      try isHeard(child, "\(number)", signals)
    }
    watch.cancel()
    #expect(try !KernelWatches.contain(parent))
  }

  /// Adds a watch to a monitor without a thread; the test runs its iterations.
  private func insert(_ path: String, into monitor: ChangeMonitor, _ signals: Heard<Int>) {
    let target = WatchEntry.Target(path: path, parents: [], prepare: {})
    _ = monitor.insert(WatchEntry(target, events: .content) { _ in signals.add(1) }, at: target)
  }

  @Test("compares a watched directory with its path once a minute, even without an event")
  func minute() throws {
    let path = try make("a")
    let signals = Heard<Int>()
    insert(path, into: monitor, signals)
    let now = ContinuousClock.now
    let (_, deadline) = monitor.state.withLock { $0.whatToWaitFor(now: now) }
    #expect(deadline == now + .seconds(60))
    try move("a", to: "elsewhere")
    _ = try make("a")
    monitor.handle(ready: [false, false], now: now + .seconds(59))
    #expect(try !KernelWatches.contain(path))
    monitor.handle(ready: [false, false], now: now + .seconds(61))
    try eventually("the new one is watched") { try KernelWatches.contain(path) }
    try eventually("that is reported") {
      monitor.handle(ready: [false, false], now: now + .seconds(62))
      return signals.all.count == 1
    }
  }

  @Test("looks at everything when its events cannot be read")
  func unreadable() throws {
    #if DEBUG
      let signals = Heard<Int>()
      insert(try make("a"), into: monitor, signals)
      let broken = Faults.Plan { call, _ in call == .read ? .fail(.inputOutput) : .proceed }
      Faults.$plan.withValue(broken) { monitor.handle(ready: [true, false], now: .now) }
      #expect(signals.all.count == 1)
    #endif
  }

  @Test("starts its thread with the next observer if none was available for the first")
  func noThread() throws {
    #if DEBUG
      let path = try make("a")
      let signals = Heard<Int>()
      let none = Faults.Plan { call, _ in
        call == .threadCreate ? .fail(.wouldBlock) : .proceed
      }
      let first = Faults.$plan.withValue(none) {
        monitor.watch(path: path, parents: [], prepare: {}, hear: { _ in signals.add(1) })
      }
      let second = monitor.watch(
        path: path, parents: [], prepare: {}, hear: { _ in signals.add(2) })
      try touch(path)
      try eventually("both are reported") { Set(signals.all) == [1, 2] }
      withExtendedLifetime((first, second)) {}
    #endif
  }

  @Test("tries again and again to create a directory, until it can")
  func failsRepeatedly() throws {
    let path = directory.path + "/a"
    let (signals, tries) = (Heard<Int>(), Heard<Int>())
    let watch = monitor.watch(path: path, parents: []) {
      tries.add(1)
      guard tries.all.count > 3 else { throw Errno.noSpace }
      try makeDirectory(path)
    } hear: { _ in
      signals.add(1)
    }
    #expect(watch.detection != .events)
    try eventually("it is made") { try exists(path, at: Directory.current) && !signals.all.isEmpty }
    try eventually("it is watched") { try KernelWatches.contain(path) }
    try isHeard(path, "file", signals)
    #expect(tries.all.count == 4)
    watch.cancel()
  }

  // The other observer ends the shared watch between the moment in which the kernel assigns its
  // number to the first and the moment in which the number is noted.
  @Test("loses no watch while others of the same directory come and go")
  func comingAndGoing() throws {
    let path = try make("a")
    let failures = Heard<String>()
    let done = DispatchSemaphore(value: 0)
    for thread in 0..<4 {
      try startThread(name: "watcher") { [monitor] in
        for round in 0..<300 {
          let heard = WakeLatch()
          let name = "\(thread)-\(round)"
          do throws(Errno) {
            let open = try FileDescriptor.open(path, [.pathOnly, .directory])
            let watch = monitor.watchOpen(open, [.created]) { news in
              if news.names[FileName(bytes: Array(name.utf8))] != nil { heard.raise() }
            }
            try FileDescriptor.open(path + "/" + name, [.writeOnly, .create]).close()
            let limit = ContinuousClock.now + .seconds(10)
            heard.block(until: limit)
            if ContinuousClock.now >= limit { failures.add(name) }
            watch.cancel()
          } catch {
            failures.add("\(error)")
          }
          if !failures.all.isEmpty { break }
        }
        done.signal()
      }
    }
    for _ in 0..<4 { done.wait() }
    #expect(failures.all == [])
    #expect(try !KernelWatches.contain(path))
  }

  private final class Owner: Sendable {
    let watch = Mutex<Watch?>(nil)
    let isAgain = Atomic(false)

    func begin(
      _ monitor: ChangeMonitor, _ path: String, again: @escaping @Sendable () -> Void
    ) {
      let new = monitor.watch(path: path, parents: []) { [weak self] in
        guard let self, isAgain.load(ordering: .sequentiallyConsistent) else { return }
        again()
      } hear: { _ in
      }
      watch.withLock { $0 = new }
      isAgain.store(true, ordering: .sequentiallyConsistent)
    }
  }

  // The monitor used to call `prepare` and to release it with its lock held. When that ended a
  // watch, it took the lock twice ("Recursive call to lock Mutex").
  @Test("may be released by the owner of a watch while its directory is created again")
  func ownerEnds() throws {
    let path = try make("a")
    let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    var owner: Owner? = Owner()
    weak let former = owner
    owner?.begin(monitor, path) {
      begun.signal()
      goOn.wait()
    }
    try removeDirectory(path)
    begun.wait()
    owner = nil
    goOn.signal()
    try eventually("the last reference went with the look") { former == nil }
    try eventually("and its watch") { monitor.statistics.watches == 0 }
  }

  #if DEBUG
    @Test("gets its thread later if none is available at first")
    func threadFailure() throws {
      let signals = Heard<Int>()
      let path = directory.path
      let failing = Faults.Plan { call, _ in call == .threadCreate ? .fail(.wouldBlock) : .proceed }
      let watch = Faults.$plan.withValue(failing) {
        monitor.watch(path: path, parents: [], prepare: {}) { _ in signals.add(1) }
      }
      try touch(path)
      try eventually("it is signalled", within: .seconds(3)) { !signals.all.isEmpty }
      withExtendedLifetime(watch) {}
    }
  #endif
}
