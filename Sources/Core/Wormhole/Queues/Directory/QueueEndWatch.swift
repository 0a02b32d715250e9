import Dispatch
import Synchronization
import WormholeSystem

/// The watches that notify callers waiting for the end of entries which files to look at again: one
/// set for all callers, for as long as any of them waits.
///
/// The end of an entry appears in three directories, each watched by its inode:
///
/// | directory | event | may be the end of |
/// |---|---|---|
/// | `pending/` | moved away, also by an exchange | a cancelled entry |
/// | each `taken/<consumer>/` | deleted, moved away, closed after writing (`.done`) | a settled entry |
/// | `outcomes/` | moved to | an entry that failed, expired or was cancelled |
///
/// A consumer's directory keeps its watch when it is renamed. A new directory, and the removal or
/// replacement of one, is reported by a watch of the path of `taken/`; the watches are then created
/// again, and all callers look. A caller first registers and then looks, so no end is missed.
final class QueueEndWatch: QueueEnds {
  private struct State {
    /// The keys are names of batches.
    var waiting: [String: [WakeLatch]] = [:]
    var watches: [Watch] = []
    var isRenewing = false
  }

  private let queue: Queue
  private let state = Mutex(State())
  /// The queue on which watches are created and ended, one call after another.
  private let control = Blocking.queue()

  private var rootPath: String { queue.directory.root.path }

  init(_ queue: Queue) { self.queue = queue }

  /// Adds a latch that is raised whenever something happens to a batch from now on.
  func add(_ latch: WakeLatch, _ batch: EntryFile) throws {
    state.withLock { $0.waiting[batch.text, default: []].append(latch) }
    do {
      try control.sync { if state.withLock(\.watches.isEmpty) { try begin() } }
    } catch {
      remove(latch, batch)
      throw error
    }
  }

  func remove(_ latch: WakeLatch, _ batch: EntryFile) {
    let isLast = state.withLock { state in
      state.waiting[batch.text]?.removeAll { $0 === latch }
      if state.waiting[batch.text]?.isEmpty == true { state.waiting[batch.text] = nil }
      return state.waiting.isEmpty
    }
    guard isLast else { return }
    control.async { [self] in
      // A waiter that arrived in the meantime has found watches, or creates its own after this.
      let ended = state.withLock { state in
        guard state.waiting.isEmpty else { return [Watch]() }
        defer { state.watches = [] }
        return state.watches
      }
      for watch in ended { watch.cancel() }
    }
  }

  /// For tests: how many watches there are.
  var watches: Int { state.withLock(\.watches.count) }

  // MARK: Watching

  private func begin() throws {
    let path = queue.directory.watch(part: QueueDirectory.taken) { [weak self] _ in self?.renew() }
    let parts = try watchParts()
    state.withLock { $0.watches = [path] + parts }
  }

  private func watchParts() throws -> [Watch] {
    let place = try queue.openOrMake()
    try place.makeParts()
    var watches: [Watch] = []
    watches += try watch(QueueDirectory.pending, [.movedFrom], at: place)
    for consumer in try place.consumers() {
      let taken = QueueDirectory.takenPath(consumer)
      watches += try watch(taken, [.deleted, .movedFrom, .closedAfterWriting], at: place)
    }
    watches += try watch(QueueDirectory.outcomes, [.movedTo], at: place)
    return watches
  }

  private func watch(
    _ path: String, _ events: WatchEvents, at place: QueueDirectory
  ) throws -> [Watch] {
    do throws(Errno) {
      let part = try place.openFile(path, [.pathOnly, .directory])
      return [
        ChangeMonitor.shared.watchOpen(part, events.union([.selfDeleted, .onlyDirectory])) {
          [weak self] in self?.hear($0)
        }
      ]
    } catch {
      // Renamed or removed just now: the watch of the path reports it.
      guard error == .noSuchFile else { throw error }
      return []
    }
  }

  private func hear(_ news: WatchNews) {
    guard !news.isEverything, news.own.isEmpty else {
      if news.own.contains(.selfDeleted) { ChangeMonitor.shared.noteRemoval(in: rootPath) }
      return renew()
    }
    for name in news.names.keys {
      guard let batch = Self.batch(name.text) else { continue }
      for latch in state.withLock({ $0.waiting[batch] ?? [] }) { latch.raise() }
    }
  }

  /// Returns the name of the batch that a file in any of the three directories belongs to.
  private static func batch(_ name: String) -> String? {
    if name.hasSuffix(EntryFile.suffix) { return name }
    let batch = name.lastIndex(of: ".").map { name[..<$0] }
    return batch.flatMap { $0.hasSuffix(EntryFile.suffix) ? String($0) : nil }
  }

  // Off the monitor's thread: it opens files.
  private func renew() {
    let mustRenew = state.withLock { state in
      // Also while the first watches are created: their reports are handled afterwards.
      defer { state.isRenewing = true }
      return !state.isRenewing
    }
    guard mustRenew else { return }
    control.async { [self] in
      let latches = state.withLock { state in
        // Excludes: an event that happens while the watches are created, and is not reported.
        state.isRenewing = false
        return state.waiting.values.flatMap { $0 }
      }
      renewParts()
      // After a failure as well: the look then reports the fault.
      for latch in latches { latch.raise() }
    }
  }

  private func renewParts() {
    guard let path = state.withLock(\.watches.first) else { return }
    guard ChangeMonitor.shared.isSettled(rootPath) else { return renewLater() }
    do {
      let parts = try watchParts()
      state.withLock { state in if !state.watches.isEmpty { state.watches = [path] + parts } }
    } catch {
      // A lack of descriptors, for example: retried until it succeeds or no caller waits.
      renewLater()
    }
  }

  private func renewLater() {
    Blocking.timers.asyncAfter(deadline: .now() + ChangeMonitor.pollInterval.dispatchInterval) {
      [weak self] in self?.renew()
    }
  }
}
