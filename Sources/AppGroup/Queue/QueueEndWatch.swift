import Dispatch
import Synchronization
import SystemCalls

/// Tells who waits for the end of entries which files to look at again: one set of watches for all
/// of them, as long as anybody waits.
///
/// How an entry ends is seen in three directories, each watched by its inode:
///
/// | directory | event | may be the end of |
/// |---|---|---|
/// | `pending/` | moved away; an exchange is one, too | what was cancelled |
/// | `taken/<consumer>/` | deleted, moved away, closed after writing (`.done`) | what was settled |
/// | `outcomes/` | moved to | what failed, expired or was cancelled |
///
/// The consumer's directory keeps its watch when it is renamed. What is removed or replaced by
/// another is told by a watch of the path of `taken/`; then the three are made anew, and everybody
/// looks. Whoever waits says so first, and looks then: so no end is missed.
final class QueueEndWatch: Sendable {
  /// - Parameter mayBeCancelled: whether the batch's content may have changed.
  typealias Wake = @Sendable (_ mayBeCancelled: Bool) -> Void
  typealias Token = UInt64

  private struct State {
    /// By the name of the batch.
    var waiting: [String: [Token: Wake]] = [:]
    var last: Token = 0
    var watches: [Watch] = []
    var isRenewing = false
  }

  private let place: QueueDirectory
  private let state = Mutex(State())
  /// Where watches are made and ended, one call after another.
  private let control = Blocking.queue()

  private var rootPath: String { place.root.path }

  init(_ place: QueueDirectory) { self.place = place }

  /// Adds somebody who waits; what happens from now on is told.
  func add(_ batch: BatchName, _ wake: @escaping Wake) throws -> Token {
    let token = state.withLock { state in
      state.last += 1
      state.waiting[batch.text, default: [:]][state.last] = wake
      return state.last
    }
    do {
      try control.sync { if state.withLock(\.watches.isEmpty) { try begin() } }
    } catch {
      remove(token, batch)
      throw error
    }
    return token
  }

  func remove(_ token: Token, _ batch: BatchName) {
    let isLast = state.withLock { state in
      state.waiting[batch.text]?[token] = nil
      if state.waiting[batch.text]?.isEmpty == true { state.waiting[batch.text] = nil }
      return state.waiting.isEmpty
    }
    guard isLast else { return }
    control.async { [self] in
      // Whoever came meanwhile has found watches, or makes its own after this.
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
    let directory = place.directory
    let root = directory.root
    let path = ChangeMonitor.shared.watch(
      path: directory.path + "/" + QueueDirectory.taken,
      parents: directory.kind.parents(in: root) + [directory.path],
      prepare: { [place] in try place.makeParts(at: place.openOrMake()) },
      hear: { [weak self] _ in self?.renew() })
    let parts = try watchParts()
    state.withLock { $0.watches = [path] + parts }
  }

  private func watchParts() throws -> [Watch] {
    let place = try place.openOrMake()
    try self.place.makeParts(at: place)
    var watches: [Watch] = []
    watches += try watch(QueueDirectory.pending, [.movedFrom], mayBeCancelled: true, at: place)
    if let consumer = try self.place.consumer(at: place) {
      watches += try watch(
        QueueDirectory.taken + "/" + consumer, [.deleted, .movedFrom, .closedAfterWriting],
        at: place)
    }
    watches += try watch(QueueDirectory.outcomes, [.movedTo], at: place)
    return watches
  }

  private func watch(
    _ path: String, _ events: WatchEvents, mayBeCancelled: Bool = false,
    at place: borrowing FileDescriptor
  ) throws -> [Watch] {
    do throws(Errno) {
      let part = try FileDescriptor.openBeneath(
        path, at: place.rawValue, [.pathOnly, .directory])
      return [
        ChangeMonitor.shared.watchOpen(part, events.union([.selfDeleted, .onlyDirectory])) {
          [weak self] news in self?.hear(news, mayBeCancelled)
        }
      ]
    } catch {
      // Renamed or removed just now: the watch of the path tells.
      guard error == .noSuchFile else { throw error }
      return []
    }
  }

  private func hear(_ news: WatchNews, _ mayBeCancelled: Bool) {
    guard !news.isEverything, news.own.isEmpty else {
      if news.own.contains(.selfDeleted) { ChangeMonitor.shared.noteRemoval(in: rootPath) }
      return renew()
    }
    for name in news.names.keys {
      guard let batch = Self.batch(name.text) else { continue }
      let wakes = state.withLock { $0.waiting[batch].map { Array($0.values) } ?? [] }
      for wake in wakes { wake(mayBeCancelled) }
    }
  }

  /// The name of the batch that a file of any of the three directories is of.
  private static func batch(_ name: String) -> String? {
    if name.hasSuffix(BatchName.suffix) { return name }
    let batch = name.lastIndex(of: ".").map { name[..<$0] }
    return batch.flatMap { $0.hasSuffix(BatchName.suffix) ? String($0) : nil }
  }

  // Off the monitor's thread: it opens files.
  private func renew() {
    let mustRenew = state.withLock { state in
      // Also while the first watches are made: what is told then is looked at after that.
      defer { state.isRenewing = true }
      return !state.isRenewing
    }
    guard mustRenew else { return }
    control.async { [self] in
      let wakes = state.withLock { state in
        // Excludes: something that happens while the watches are made, and is not told.
        state.isRenewing = false
        return state.waiting.values.flatMap(\.values)
      }
      renewParts()
      // Also after a failure: then the look tells what is wrong.
      for wake in wakes { wake(true) }
    }
  }

  private func renewParts() {
    guard let path = state.withLock(\.watches.first) else { return }
    guard ChangeMonitor.shared.isSettled(rootPath) else { return renewLater() }
    do {
      let parts = try watchParts()
      state.withLock { state in if !state.watches.isEmpty { state.watches = [path] + parts } }
    } catch {
      // For want of descriptors, for example: it is tried until it succeeds or nobody waits.
      renewLater()
    }
  }

  private func renewLater() {
    Blocking.timers.asyncAfter(deadline: .now() + ChangeMonitor.pollInterval.dispatchInterval) {
      [weak self] in self?.renew()
    }
  }
}
