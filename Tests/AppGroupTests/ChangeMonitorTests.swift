import Dispatch
import Synchronization
import SystemCalls
import TestSupport
import Testing

@testable import AppGroup

@Suite("The change monitor")
struct ChangeMonitorTests {
  let directory: TemporaryDirectory
  let monitor = ChangeMonitor()

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func make(_ name: String) throws -> String {
    try makeDirectory(directory.path + "/" + name)
    return directory.path + "/" + name
  }

  private func touch(_ directory: String, _ name: String = "file") throws {
    try FileDescriptor.open(directory + "/" + name, [.writeOnly, .create]).close()
  }

  @Test("wakes only for the names that are watched: 1,000 idle observers cost nothing")
  func idleObservers() throws {
    let signals = Heard<Int>()
    var watches: [Watch] = []
    for index in 0..<1_000 {
      let path = try make("watched-\(index)")
      watches.append(
        monitor.watch(path: path, parents: [], prepare: {}, signal: { signals.add(index) }))
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
    // The monitor would have woken before it hears of this one, whose event comes after those.
    try touch(directory.path + "/watched-8")
    try eventually("the watched one is signalled") { signals.all.contains(8) }
    #expect(monitor.statistics.wakeUps - before <= 3, "one for each of the events of a touch")
    #expect(Set(signals.all) == [7, 8])
    #expect(monitor.statistics.watches == 1_000)
    watches.removeAll()
    #expect(monitor.statistics.watches == 0)
  }

  @Test("signals everybody when the kernel's queue has overflowed")
  func overflow() throws {
    let noisy = [try make("a"), try make("b")]
    let quiet = try make("quiet")
    let gate = DispatchSemaphore(value: 0)
    let blocked = Atomic(false)
    let signals = Heard<Int>()
    var watches: [Watch] = []
    for path in noisy {
      watches.append(
        monitor.watch(path: path, parents: [], prepare: {}) {
          // The monitor's thread is held here, so that nobody takes events out of the queue.
          if !blocked.exchange(true, ordering: .sequentiallyConsistent) { gate.wait() }
        })
    }
    watches.append(
      monitor.watch(path: quiet, parents: [], prepare: {}, signal: { signals.add(1) }))
    try touch(noisy[0])
    try eventually("the thread is held") { blocked.load(ordering: .sequentiallyConsistent) }
    // Alternating, for the kernel merges equal events in a row; more than max_queued_events.
    for _ in 0..<9_000 {
      for path in noisy { try touch(path) }
    }
    try touch(quiet)
    gate.signal()
    try eventually("an observer whose event was lost is signalled") { !signals.all.isEmpty }
    withExtendedLifetime(watches) {}
  }

  @Test("gives observers of one directory one watch, and frees it with the last")
  func sharedWatch() throws {
    let path = try make("a")
    let signals = Heard<Int>()
    let first = monitor.watch(path: path, parents: [], prepare: {}, signal: { signals.add(1) })
    var second: Watch? = monitor.watch(
      path: path, parents: [], prepare: {}, signal: { signals.add(2) })
    withExtendedLifetime(second) {}
    second = nil
    try touch(path)
    try eventually("the one that is left is signalled") { signals.all.contains(1) }
    #expect(!signals.all.contains(2))
    first.cancel()
    #expect(monitor.statistics.watches == 0)
  }

  @Test("tells who waits for a lock that its holder has closed it or was killed")
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
    #expect(try waitReadable([output.read.rawValue], until: .now + .seconds(20)) == [true])
    #expect(try !own.tryLock(.exclusive))
    let watch = monitor.watchOpen(own, [.closedWithoutWriting]) { latch.raise() }
    try holder.send(.kill)
    _ = try holder.wait(until: .now + .seconds(10))
    // Bounded by its deadline; that the wake-up came is seen by what it finds.
    latch.block(until: .now + .seconds(20))
    try eventually("the lock is free") { try own.tryLock(.exclusive) }
    withExtendedLifetime(watch) {}
  }
}

@Suite("A wake latch")
struct WakeLatchTests {
  @Test("remembers one raise until somebody waits, and wakes who waits already")
  func remembers() async throws {
    let latch = WakeLatch()
    latch.raise()
    latch.raise()
    latch.block(until: .now + .seconds(60))
    let far = ContinuousClock.now + .seconds(600)
    let waiting = Task { await latch.suspend(until: far) }
    await Task.yield()
    latch.raise()
    await waiting.value
    #expect(ContinuousClock.now < far)
    latch.block(until: .now)
  }

  @Test("wakes a cancelled task")
  func cancellation() async throws {
    let latch = WakeLatch()
    let far = ContinuousClock.now + .seconds(600)
    let waiting = Task { await latch.suspend(until: far) }
    waiting.cancel()
    await waiting.value
    #expect(ContinuousClock.now < far)
  }

  @Test("wakes a blocked thread from another one, however they meet")
  func threads() throws {
    for _ in 0..<200 {
      let latch = WakeLatch()
      let done = DispatchSemaphore(value: 0)
      try startThread(name: "raiser") {
        latch.raise()
        done.signal()
      }
      latch.block(until: .now + .seconds(600))
      done.wait()
    }
  }

  @Test("gets its thread later when none is to be had at first")
  func threadFailure() throws {
    let signals = Heard<Int>()
    let path = directory.path
    let failing = Faults.Plan { call, _ in call == .threadCreate ? .fail(.wouldBlock) : .proceed }
    let watch = Faults.$plan.withValue(failing) {
      monitor.watch(path: path, parents: [], prepare: {}) { signals.add(1) }
    }
    try touch(path)
    try eventually("it is signalled", within: .seconds(3)) { !signals.all.isEmpty }
    withExtendedLifetime(watch) {}
  }

  @Test("hears of the replacement of a directory above that it had to make")
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
    } signal: {
      signals.add(1)
    }
    try rename(
      above, at: Directory.current, to: directory.path + "/old", at: Directory.current)
    try eventually("it is signalled", within: .seconds(10)) { !signals.all.isEmpty }
    withExtendedLifetime(watch) {}
  }
}
