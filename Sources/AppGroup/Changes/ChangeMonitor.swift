import Dispatch
import Synchronization
package import SystemCalls

/// Tells observers that a directory may have changed: one inotify descriptor and one thread for the
/// process, however many observers there are.
///
/// The rules of inotify(7) that shape this file: a watch is for one inode, so that the kernel wakes
/// only those whose name changed; events merge and overflow, so that one means "look again" and
/// carries no data; a directory that is removed or moved away takes its watch with it, so the
/// monitor opens the path anew; a directory made before the watch gives no event, so observers
/// watch first and read then. Where there is no watch to be had (instances or watches used up) or
/// the file system is a network's, whose other machines cause no events here, the monitor polls.
package final class ChangeMonitor: Sendable {
  package static let shared = ChangeMonitor()

  /// How the changes of one directory are noticed.
  package enum Detection: Sendable, Hashable {
    case events
    /// By looking at intervals, and why.
    case polling(reason: String)
  }

  /// How often a polled directory is looked at, and one that is missing is looked for.
  static let pollInterval: Duration = .milliseconds(200)
  /// How long nothing of a container must have been removed before what was is made again: the
  /// program that removes a directory may be about to remove the whole container (`rm -r`), which fails when
  /// something is made in it meanwhile.
  static let settleInterval: Duration = .seconds(1)

  /// Taken for bookkeeping only: its holder calls no file system and nobody's closure.
  let state: Mutex<WatchTable>
  private let relay = WatchRelay()

  /// - Parameter checkInterval: how often a healthy watch is compared with its path, at most.
  init(checkInterval: Duration = .seconds(60)) {
    state = Mutex(WatchTable(checkInterval: checkInterval))
  }

  /// Watches the directory at a path, through its replacement by another as well, and tells which
  /// entries to look at. The watch is there when the call returns; on a file system that does not
  /// answer it does not return, and nobody else waits for that.
  ///
  /// - Parameters:
  ///   - path: absolute; need not exist.
  ///   - parents: directories above it whose own replacement replaces this one, too; the container
  ///     comes first.
  ///   - events: what tells of the directory's own end is added.
  ///   - prepare: makes the directory where it is missing; called on this thread, and again on
  ///     another one when the directory was removed.
  ///   - hear: called on the monitor's thread, so it must be short, and use no file system: raise a
  ///     latch, enqueue work. Everything is to be looked at when the directory was replaced.
  package func watch(
    path: String, parents: [String], _ events: WatchEvents = .content,
    prepare: @escaping @Sendable () throws -> Void,
    hear: @escaping @Sendable (WatchNews) -> Void
  ) -> Watch {
    let place = WatchEntry.Place(path: path, parents: parents, prepare: prepare)
    return started(insert(WatchEntry(place, events, hear), at: place))
  }

  /// Watches an open file or directory for certain events, only as long as it exists, and tells
  /// where to look: what is large cannot be looked at as a whole each time.
  ///
  /// - Parameters:
  ///   - file: needed only during this call; the watch is the inode's, also when it is moved.
  ///   - hear: called on the monitor's thread, so it must be short, and use no file system.
  package func watchOpen(
    _ file: borrowing FileDescriptor, _ events: WatchEvents,
    hear: @escaping @Sendable (WatchNews) -> Void
  ) -> Watch {
    started(insert(WatchEntry(nil, events, hear), open: file))
  }

  private func started(_ id: WatchTable.ID) -> Watch {
    let (mustStart, detection) = state.withLock { ($0.startThread(), $0.detection(of: id)) }
    if mustStart { start() }
    return Watch(monitor: self, id: id, detection: detection)
  }

  /// Calls a closure when all watches have been told of what has happened by now.
  ///
  /// - Parameter body: called once, on the monitor's thread, so it must be short.
  package func afterEvents(_ body: @escaping @Sendable () -> Void) {
    let mustStart = state.withLock { table in
      table.add(afterEvents: body)
      return table.startThread()
    }
    if mustStart { start() }
  }

  /// Goes on with something on the monitor's thread, once all are told; another thread watches then.
  ///
  /// - Parameter body: may take as long as it likes.
  /// - Returns: false when there is enough to go on with: then it is for another thread.
  func goOn(with body: @escaping @Sendable () -> Void) -> Bool { relay.add(body) }

  /// Notes that something was found removed.
  ///
  /// - Parameter container: its path.
  func noteRemoval(in container: String) {
    state.withLock { $0.noteRemoval(in: container, now: .now) }
  }

  /// Whether what was removed from a container may be made again by those who only wait in it; a
  /// user's own call makes what it needs at once.
  func isSettled(_ container: String) -> Bool {
    state.withLock { $0.isSettled(container, now: .now) }
  }

  func remove(_ id: WatchTable.ID) {
    // Let go of after the lock: with it may end something that ends a watch.
    let entry = state.withLock { $0.remove(id) }
    withExtendedLifetime(entry) {}
  }

  /// For tests and figures: how often the thread has woken up, and how many watches there are.
  package var statistics: (wakeUps: Int, watches: Int) {
    state.withLock { ($0.wakeUps, $0.count) }
  }

  private func start() {
    do throws(Errno) {
      try startThread(name: "wormhole.watch") { [self] in run() }
    } catch {
      // No thread is to be had now, and without one nobody would ever be told: try until there is.
      Blocking.timers.asyncAfter(deadline: .now() + Self.pollInterval.dispatchInterval) { [self] in
        start()
      }
    }
  }

  private func run() {
    while true {
      turn()
      guard hasGoneOn() else { continue }
      guard relay.waitToWatch() else { return }
    }
  }

  // By itself, so that nothing of what it went on with is kept while the thread waits.
  /// - Returns: whether another thread watches now.
  private func hasGoneOn() -> Bool {
    guard let body = relay.take() else { return false }
    guard hasSuccessor() else {
      relay.ended()
      Blocking.queue().async(execute: body)
      return false
    }
    body()
    return true
  }

  private func hasSuccessor() -> Bool {
    if relay.wakeSuccessor() { return true }
    do throws(Errno) {
      try startThread(name: "wormhole.watch") { [self] in run() }
      return true
    } catch {
      // No thread is to be had now: this one watches on.
      return false
    }
  }

  // One round of the thread: wait, take events, decide under the lock, act outside it.
  private func turn() {
    let (descriptors, deadline) = state.withLock { $0.whatToWaitFor(now: .now) }
    var ready = descriptors.map { _ in false }
    do throws(Errno) {
      ready = try waitReadable(descriptors, until: deadline)
    } catch {
      // The descriptors are ours and the call well-formed: what is left is a lack of memory in the
      // kernel. Look at everything after a pause, as for an overflow.
      pauseThread(Self.pollInterval)
      ready = descriptors.map { _ in true }
    }
    tell(ready: ready, now: .now)
  }

  func tell(ready: [Bool], now: ContinuousClock.Instant) {
    let turn = state.withLock { $0.handle(ready: ready, now: now) }
    for lane in turn.lanes { startWorking(in: lane) }
    for call in turn.calls { call() }
  }
}

/// A watch, until it is cancelled or forgotten.
package final class Watch: Sendable {
  private let monitor: ChangeMonitor
  private let id: WatchTable.ID
  /// How changes are noticed, as of the beginning.
  package let detection: ChangeMonitor.Detection

  init(monitor: ChangeMonitor, id: WatchTable.ID, detection: ChangeMonitor.Detection) {
    self.monitor = monitor
    self.id = id
    self.detection = detection
  }

  deinit { cancel() }

  /// Ends the watch; the kernel's is freed with the last one for the same directory.
  package func cancel() {
    monitor.remove(id)
  }
}
