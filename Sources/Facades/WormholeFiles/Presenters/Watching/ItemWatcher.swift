import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// Watches one presented item and reports its changes by any program.
///
/// An event only names the place to look at; looks are made on the watcher's own queue, one at a
/// time. While its presenter has its own access under way the watcher waits; that access's
/// publications then count as known.
final class ItemWatcher: Sendable {
  private struct Pending {
    var news: [ItemTree.NodeID: WatchNews] = [:]
    var isScheduled = false
    var pauses = 0
    /// Publications of accesses that have ended, while another one is under way.
    var published: [ItemPath: FileStatus?] = [:]
    var isCancelled = false
    var path: ItemPath?
    var named: String?
  }

  private let moved = Mutex<@Sendable () -> Void>({})
  private let report: @Sendable ([PresenterNotice]) -> Void
  private let queue = Blocking.queue()
  private let pending = Mutex(Pending())
  /// Nil after the end.
  private let state = Mutex<ItemSnapshot?>(nil)

  /// - Parameter report: gets the notices, on any thread.
  init(_ report: @escaping @Sendable ([PresenterNotice]) -> Void) {
    self.report = report
    let look = ItemSnapshot { [weak self] source, news in
      self?.pending.withLock { $0.news[source, default: WatchNews()].merge(news) }
      self?.schedule(after: nil)
    }
    state.withLock { $0 = look }
  }

  /// The item's current path; nil while there is none.
  var path: ItemPath? { pending.withLock { $0.path } }

  /// The path that the user named, as long as it counts.
  var named: String? { pending.withLock { $0.named } }

  /// Calls a closure when the item has moved, on any thread, with no lock held.
  func whenMoved(_ body: @escaping @Sendable () -> Void) { moved.withLock { $0 = body } }

  /// Watches another item; its current state counts as known.
  ///
  /// - Parameters:
  ///   - path: its place.
  ///   - named: the path that leads there, perhaps through links.
  /// - Complexity: for a directory, one look at each entry and one watch for each directory in it.
  func present(_ path: ItemPath?, named: String? = nil) {
    state.withLock { state in
      state?.present(path, named: named)
      remember(state)
    }
  }

  func cancel() {
    pending.withLock { $0.isCancelled = true }
    // Outside the lock: the end of a watch calls no handler, but frees objects of other locks.
    let old = state.withLock { $0.take() }
    withExtendedLifetime(old) {}
  }

  // MARK: Events

  private func schedule(after milliseconds: Int?) {
    if let milliseconds {
      return queue.after(.milliseconds(milliseconds)) { [weak self] in
        // On a busy machine, that may be before the second event of a move arrives.
        ChangeMonitor.shared.afterEvents { [weak self] in
          self?.queue.async { [weak self] in self?.look(isLater: true) }
        }
      }
    }
    let isFirst = pending.withLock { pending in
      guard !pending.isScheduled, pending.pauses == 0, !pending.isCancelled else { return false }
      pending.isScheduled = true
      return true
    }
    if isFirst { queue.async { [weak self] in self?.look() } }
  }

  private func look(isLater: Bool = false) {
    update { state in
      // Excludes: a look begins before a pause and finds what is published after it.
      let news = pending.withLock { pending -> [ItemTree.NodeID: WatchNews]? in
        pending.isScheduled = false
        guard pending.pauses == 0, !pending.isCancelled else { return nil }
        return exchange(&pending.news, with: [:])
      }
      return news.flatMap { state?.look($0, isLater: isLater) }
    }
  }

  /// Changes the known state, and reports the findings.
  private func update(_ body: (inout ItemSnapshot?) -> ItemSnapshot.Result?) {
    let before = path
    let result = state.withLock { state -> ItemSnapshot.Result? in
      let result = body(&state)
      // Before the notices, so that a presenter that learns of a move, and asks, gets the new path.
      remember(state)
      // Under the lock, which only enqueues them: a thread that finds no more news knows that the
      // findings of another thread were reported before.
      if let notices = result?.notices, !notices.isEmpty { report(notices) }
      return result
    }
    guard let result else { return }
    if path != before { moved.withLock { $0 }() }
    if let next = result.nextLook { schedule(after: next) }
  }

  private func remember(_ state: ItemSnapshot?) {
    pending.withLock { pending in
      pending.path = state?.path
      pending.named = state?.named
    }
  }

  // MARK: The presenter's own accesses, and reported moves

  /// Begins one of the presenter's own accesses: nothing is reported before it ends.
  func pause() {
    state.withLock { _ in pending.withLock { $0.pauses += 1 } }
  }

  /// Ends it.
  ///
  /// - Parameters:
  ///   - published: the published items: reported only if they are missing.
  ///   - attributes: paths where only attributes may have changed.
  func resume(published: [ItemPath: FileStatus?], attributes: [ItemPath] = []) {
    update { state in
      let last = pending.withLock { pending -> Pending? in
        pending.pauses -= 1
        pending.published.merge(published) { $1 }
        for path in attributes {
          guard let now = statusIfVisible(path.text),
            state?.known(path)?.isUnwritten(in: now) == true
          else { continue }
          pending.published[path] = .some(now)
        }
        guard pending.pauses == 0 else { return nil }
        defer {
          pending.news = [:]
          pending.published = [:]
        }
        return pending
      }
      guard let last else { return nil }
      let path = state?.path
      var result = look(&state, last.news, at: Array(last.published.keys))
      result.notices.removeAll { Self.isOwn($0, of: path, last.published) }
      return result
    }
  }

  /// A mover reports that it moved an item that is, contains, or lies in this one.
  ///
  /// - Parameter isOwn: whether the presenter itself moved it.
  func follow(from old: ItemPath, to new: ItemPath, isOwn: Bool) {
    update { state in
      guard let path = state?.path else { return nil }
      if let moved = path.moved(from: old, to: new) {
        state?.follow(to: moved)
        // An entry may have appeared at the new place before that was watched.
        var result =
          state?.isPresent == true ? ItemSnapshot.Result() : look(&state, [:], at: [old, new])
        if !isOwn { result.notices.insert(.moved(moved), at: 0) }
        return result
      }
      guard path.contains(old) else { return nil }
      let wasKnown = state?.known(old) != nil
      var result = look(&state, [:], at: [old, new])
      let notice = PresenterNotice.subitemMoved(old, new)
      let isNews = wasKnown || result.notices.contains(.subitemChanged(old))
      result.notices.removeAll {
        $0 == notice || $0 == .subitemChanged(old) || $0 == .subitemAppeared(new)
      }
      // If it was gone before this call, it was reported then: as moved, if it stayed in here.
      if !isOwn && (isNews || !path.contains(new)) { result.notices.insert(notice, at: 0) }
      return result
    }
  }

  // Also looks at certain paths, at once.
  private func look(
    _ state: inout ItemSnapshot?, _ news: [ItemTree.NodeID: WatchNews], at paths: [ItemPath]
  ) -> ItemSnapshot.Result {
    var news = news
    for path in paths {
      guard let place = state?.place(of: path) else { continue }
      news[place.node, default: WatchNews()].add(place.name)
    }
    return state?.look(news, isLast: true) ?? ItemSnapshot.Result()
  }

  private static func isOwn(
    _ notice: PresenterNotice, of item: ItemPath?, _ published: [ItemPath: FileStatus?]
  ) -> Bool {
    let place: ItemPath? =
      switch notice {
      case .changed: item
      case .moved, .version: nil
      case .subitemAppeared(let path), .subitemChanged(let path), .subitemMoved(_, let path): path
      }
    guard let place else { return false }
    return published.contains { path, status in
      (path == place || path.contains(place)) && isAsPublished(path, status)
    }
  }

  private static func isAsPublished(_ path: ItemPath, _ published: FileStatus?) -> Bool {
    switch (published, statusIfVisible(path.text)) {
    case (nil, nil): true
    case (let published?, let now?):
      published.isUnwritten(in: now) && published.permissions == now.permissions
    default: false
    }
  }
}
