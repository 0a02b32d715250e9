import Dispatch
import Synchronization
import WormholeSystem

/// The watches of a queue's directory for the end of entries.
///
/// The end of an entry appears in three directories, each watched by its inode:
///
/// | directory | event | may be the end of |
/// |---|---|---|
/// | `pending/` | moved away, including by an exchange | a cancelled entry |
/// | each `taken/<consumer>/` | deleted, moved away, closed after writing (`.done`) | a settled entry |
/// | `outcomes/` | moved to | an entry that failed, expired or was cancelled |
///
/// A consumer's directory keeps its watch when it is renamed. A new directory, and the removal or
/// replacement of one, is reported by a watch of the path of `taken/`; the watches are then created
/// again, and all callers look.
final class QueueEndWatch: Cancelling {
  private struct State {
    /// The watch of the path first; none before the beginning and after the end.
    var watches: [Watch] = []
    var isRenewing = false
  }

  private let queue: PlainQueue
  private weak let ends: QueueEnds?
  private let state = Mutex(State())
  /// The queue on which watches are created, one call after another.
  private let control = Blocking.queue()

  private var rootPath: String { queue.directory.root.path }

  init(_ queue: PlainQueue, _ ends: QueueEnds) throws {
    self.queue = queue
    self.ends = ends
    try control.sync {
      let path = queue.directory.watch(part: QueueDirectory.taken) { [weak self] _ in
        self?.renew()
      }
      let parts = try watchParts()
      state.withLock { $0.watches = [path] + parts }
    }
  }

  func cancel() {
    for watch in state.withLock({ exchange(&$0.watches, with: []) }) { watch.cancel() }
  }

  fileprivate var count: Int { state.withLock(\.watches.count) }

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
    // Nil if it was renamed or removed just now: the watch of the path reports it.
    guard let part = try ifPresent(place.openFile(path, [.pathOnly, .directory])) else { return [] }
    let watch = ChangeMonitor.shared.watchOpen(
      part, events.union([.selfDeleted, .onlyDirectory])
    ) { [weak self] in self?.hear($0) }
    return [watch]
  }

  private func hear(_ news: WatchNews) {
    guard !news.isEverything, news.own.isEmpty else {
      if news.own.contains(.selfDeleted) { ChangeMonitor.shared.noteRemoval(in: rootPath) }
      return renew()
    }
    for name in news.names.keys {
      if let batch = Self.batch(name.text) { ends?.raise(batch) }
    }
  }

  /// Returns the batch that a file in any of the three directories belongs to.
  private static func batch(_ name: String) -> EntryFile? {
    (EntryFile(name) ?? name.lastIndex(of: ".").flatMap { EntryFile(name[..<$0]) })?.whole
  }

  // Off the monitor's thread: it opens files.
  private func renew() {
    // Also while the first watches are created: their reports are handled afterwards.
    guard !state.withLock({ exchange(&$0.isRenewing, with: true) }) else { return }
    control.async { [self] in
      // Excludes: an event that happens while the watches are created, and is not reported.
      state.withLock { $0.isRenewing = false }
      renewParts()
      // After a failure as well: the look then reports the fault.
      ends?.raiseAll()
    }
  }

  private func renewParts() {
    guard let path = state.withLock(\.watches.first) else { return }
    // A lack of descriptors, for example: retried until it succeeds or no caller waits.
    guard ChangeMonitor.shared.isSettled(rootPath), let parts = try? watchParts() else {
      return Blocking.retry { [weak self] in self?.renew() }
    }
    state.withLock { state in if !state.watches.isEmpty { state.watches = [path] + parts } }
  }
}

extension QueueEnds {
  /// For tests: how many watches there are.
  var watches: Int { (watch as? QueueEndWatch)?.count ?? 0 }
}
