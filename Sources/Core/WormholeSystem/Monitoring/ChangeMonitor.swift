import Synchronization

/// How changes are noticed.
///
/// ```swift
/// let snapshots = try container.value("seats").snapshots()
/// if case .polling(let reason) = snapshots.detection { print("changes come late: \(reason)") }
/// ```
public enum ChangeDetection: Sendable, Hashable {
  /// Kernel events, within a fraction of a millisecond.
  case events
  /// Polling five times a second, with the reason: a network file system, or no watch left. There
  /// are fewer looks, down to one in four seconds, while the processors are so busy that looks come
  /// late, and, without an inotify instance, at a queue or a registration unchanged for twenty
  /// seconds. What other consumers of a queue left is looked for at most once a second.
  case polling(reason: String)
}

/// The monitor that signals observers when a directory may have changed: one inotify descriptor and
/// one thread for the process, however many observers there are.
///
/// Rules of inotify(7) shape this file. A watch is for one inode, so the kernel wakes only for the
/// observed names. Events merge and overflow, so an event means "look again" and carries no data. A
/// directory that is removed or moved away takes its watch with it, so the monitor opens the path
/// again. It learns of a removal from the parent: the directory's own event waits until no process
/// has it, or a directory in it, open, and a stopped process may. A directory created before the
/// watch causes no event, so observers watch first, then read. The monitor polls if no watch is
/// available (instances or watches used up), or on a network file system, where other machines
/// cause no events here.
package final class ChangeMonitor: Sendable {
  package static let shared = ChangeMonitor()

  /// The interval between looks at a polled directory, and for a missing one.
  package static let pollInterval: Duration = .milliseconds(200)
  /// The interval between looks at a polled directory that has not changed for five times as long.
  static let calmInterval: Duration = .seconds(4)
  /// The time without a removal in a container after which removed directories are created again. A
  /// program that removes a directory may be about to remove the whole container (`rm -r`), which
  /// fails if a directory is created in it meanwhile.
  static let settleInterval: Duration = .seconds(2)

  /// The number of monitors with their own event queue; a user has 128 queues (inotify(7),
  /// max_user_instances).
  private static let ledCount = Atomic(0)
  static let mostLed = 4
  private let isLed: Bool

  /// Locked for bookkeeping only: its holder calls neither the file system nor a caller's closure.
  let state: Mutex<WatchTable>

  /// - Parameter checkInterval: The shortest interval between comparisons of a healthy watch with
  ///   its path.
  init(checkInterval: Duration = .seconds(60), isLed: Bool = false) {
    state = Mutex(WatchTable(checkInterval: checkInterval, hasThread: isLed))
    self.isLed = isLed
  }

  deinit {
    if isLed { Self.ledCount.subtract(1, ordering: .relaxed) }
  }

  /// Creates a monitor without a thread: a waiting thread runs its iterations by `lead`. So a change
  /// wakes that thread, and not first another one to wake it.
  ///
  /// - Returns: Nil if the process already has the largest number of them.
  package static func led() -> ChangeMonitor? {
    guard ledCount.add(1, ordering: .relaxed).newValue <= mostLed else {
      ledCount.subtract(1, ordering: .relaxed)
      return nil
    }
    return ChangeMonitor(isLed: true)
  }

  /// Blocks the calling thread until a latch is raised or a deadline has passed; meanwhile it runs
  /// the iterations of this monitor, which is led. One thread leads at a time.
  package func lead(for latch: WakeLatch, until deadline: ContinuousClock.Instant) {
    let wakeUp: @Sendable () -> Void = { [self] in state.withLock { $0.wake() } }
    while latch.wake(until: nil, wakeUp) {
      let ready = wait(until: deadline)
      // Raised by another thread, or else from here on by the iteration itself.
      guard latch.sleepsNoMore() else { return }
      let now = ContinuousClock.now
      handle(ready: ready, now: now)
      if now >= deadline { return }
    }
  }

  /// Watches the directory at a path, even through its replacement by another, and reports the
  /// entries to look at. The watch exists when the call returns. On a file system that does not
  /// answer, the call does not return, but no other caller waits for it.
  ///
  /// - Parameters:
  ///   - path: Absolute; need not exist.
  ///   - parents: Parent directories whose replacement also replaces this one; the container comes
  ///     first.
  ///   - way: The path of the container, to learn at once that it names another directory: a link
  ///     above it is pointed elsewhere, or a directory above it is moved. Otherwise that is found
  ///     within a minute.
  ///   - lane: Directories with the same lane are looked for one after another, by one thread at a
  ///     time; by default those of the container.
  ///   - events: The events to watch for; those of the directory's own end are added.
  ///   - prepare: Called before the directory is looked for, on this thread, and again on another
  ///     one after the directory was removed; may create it. If it is missing after that, its
  ///     appearance is an event of the nearest existing parent: looking leaves no names behind.
  ///   - readsNames: Whether the news contains the names of entries; without them it costs less.
  ///   - pollInterval: The shortest interval between looks if there are no events.
  ///   - showsInFiles: Whether the times of the directory and of the files in it show each event, so
  ///     that they are compared when it is polled. The end of a lock does not show in them.
  ///   - hear: Called on the monitor's thread, so it must be short and not wait for a file system:
  ///     raise a latch, enqueue work. After a replacement of the directory everything must be
  ///     looked at.
  package func watch(
    path: String, parents: [String], way: String? = nil, lane: String? = nil,
    _ events: WatchEvents = .content, readsNames: Bool = true,
    pollInterval: Duration = ChangeMonitor.pollInterval, showsInFiles: Bool = false,
    prepare: @escaping @Sendable () throws -> Void,
    hear: @escaping @Sendable (WatchNews) -> Void
  ) -> Watch {
    let target = WatchEntry.Target(
      path: path, parents: parents, way: way, lane: lane, pollInterval: pollInterval,
      showsInFiles: showsInFiles, prepare: prepare)
    return started(
      insert(WatchEntry(target, events: events, readsNames: readsNames, hear: hear), at: target))
  }

  /// Watches an open file or directory for certain events, only as long as it exists, and reports
  /// the target to look at, because a large directory cannot be examined completely each time.
  ///
  /// - Parameters:
  ///   - file: Needed only during this call; the watch belongs to the inode, even when it is moved.
  ///   - hear: Called on the monitor's thread, so it must be short and not use the file system.
  package func watchOpen(
    _ file: borrowing FileDescriptor, _ events: WatchEvents,
    hear: @escaping @Sendable (WatchNews) -> Void
  ) -> Watch {
    started(insert(WatchEntry(nil, events: events, hear: hear), open: file))
  }

  private func started(_ id: WatchTable.ID) -> Watch {
    let (mustStart, detection) = state.withLock { ($0.startThread(), $0.detection(of: id)) }
    if mustStart { start() }
    return Watch(monitor: self, id: id, detection: detection)
  }

  /// Calls a closure when all watches have received the events so far.
  ///
  /// - Parameter body: Called once, on the monitor's thread, so it must be short.
  package func afterEvents(_ body: @escaping @Sendable () -> Void) {
    let mustStart = state.withLock { table in
      table.add(afterEvents: body)
      return table.startThread()
    }
    if mustStart { start() }
  }

  /// - Parameter container: The path of the container.
  package func noteRemoval(in container: String) {
    state.withLock { $0.noteRemoval(in: container, now: .now) }
  }

  /// Returns whether waiting processes may create removed directories of a container again; a
  /// user's own call creates them at once.
  package func isSettled(_ container: String) -> Bool {
    state.withLock { $0.isSettled(container, now: .now) }
  }

  /// Calls a closure after a pause, when waiting processes may create removed directories again.
  package func whenSettled(
    _ container: String, on queue: BlockingQueue, _ body: @escaping @Sendable () -> Void
  ) {
    queue.after(Self.pollInterval) { [self] in
      if isSettled(container) { body() } else { whenSettled(container, on: queue, body) }
    }
  }

  func remove(_ id: WatchTable.ID) {
    // Released after the lock, because its release may end another watch.
    let entry = state.withLock { $0.remove(id) }
    withExtendedLifetime(entry) {}
  }

  /// Returns whether the watch has the kernel's events now: only on a local file system.
  func hasEvents(_ id: WatchTable.ID) -> Bool {
    state.withLock { $0.detection(of: id) == .events }
  }

  /// For tests and measurements: the numbers of the thread's wake-ups and of watches.
  package var statistics: (wakeUps: Int, watches: Int) {
    state.withLock { ($0.wakeUps, $0.count) }
  }

  private func start() {
    do throws(Errno) {
      // One round: wait, take events, decide under the lock, act outside it.
      try startThread(name: "wormhole.watch") { [self] in
        while true { handle(ready: wait(until: nil), now: .now) }
      }
    } catch {
      // Without it, no observer would ever be signaled: try until there is one.
      Timers.after(Self.pollInterval) { [self] in start() }
    }
  }

  private func wait(until limit: ContinuousClock.Instant?) -> [Bool] {
    let (descriptors, next) = state.withLock { $0.whatToWaitFor(now: .now) }
    let isStalled = Timers.areStalled
    defer { if isStalled { Timers.callStalled() } }
    let stalled = isStalled ? ContinuousClock.now + Timers.stalledWait : nil
    let deadline = [next, limit, stalled].compactMap(\.self).min()
    do throws(Errno) {
      return try waitReadable(descriptors, until: deadline)
    } catch {
      // The descriptors are ours and the call is valid, so the kernel lacks memory. Look at
      // everything after a pause, as for an overflow.
      pauseThread(Self.pollInterval)
      return descriptors.map { _ in true }
    }
  }

  func handle(ready: [Bool], now: ContinuousClock.Instant) {
    let actions = state.withLock { $0.handle(ready: ready, now: now) }
    for (id, entry, file) in actions.compared { compare(id, entry, file) }
    for lane in actions.lanes { startWorking(in: lane) }
    for call in actions.calls { call() }
  }
}

/// A watch, which lasts until it is cancelled or released.
package final class Watch: Watching {
  private let monitor: ChangeMonitor
  private let id: WatchTable.ID
  /// How changes were noticed at the beginning.
  package let detection: ChangeDetection

  init(monitor: ChangeMonitor, id: WatchTable.ID, detection: ChangeDetection) {
    self.monitor = monitor
    self.id = id
    self.detection = detection
  }

  deinit { cancel() }

  /// Whether changes are noticed by events now. Then the file system is local, and reading a small
  /// file that has just changed does not wait.
  package var hasEvents: Bool { detection == .events && monitor.hasEvents(id) }

  /// Ends the watch; the kernel's watch is freed with the last one for the same directory.
  package func cancel() {
    monitor.remove(id)
  }
}

/// The observation of changes, until it is cancelled or released.
package protocol Watching: Cancelling {
  var detection: ChangeDetection { get }
}

/// Something that can be ended.
package protocol Cancelling: Sendable {
  func cancel()
}

/// Whether an observation was cancelled, for calls that may be under way by then.
package final class CancelMark: Cancelling {
  private let mark = Atomic(false)

  package init() {}

  package var isCancelled: Bool { mark.load(ordering: .acquiring) }

  package func cancel() { mark.store(true, ordering: .releasing) }
}
