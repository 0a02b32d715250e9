import Synchronization
import Wormhole
import WormholeSystem

/// The watches of the directories of a container, and the news that they bring.
///
/// It creates no directory. A missing directory is entered when its parent reports its appearance.
final class DirectoryTree: Sendable {
  private struct State {
    var watches: [String: Watch] = [:]
    /// In the order in which the directories became known.
    var order: [String] = []
    var news: [String: WatchNews] = [:]
    var isCancelled = false
  }

  private let root: ContainerRoot
  private let state = Mutex(State())
  private let signal: @Sendable () -> Void

  /// The container itself.
  static let top = "."

  init(_ root: ContainerRoot, _ signal: @escaping @Sendable () -> Void) {
    self.root = root
    self.signal = signal
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  var detection: ChangeDetection {
    state.withLock { $0.watches[Self.top]?.detection ?? .events }
  }

  /// Watches a directory, by its path in the container; returns whether it is new, so that all of its
  /// content has to be examined.
  func enter(_ path: String) -> Bool {
    guard state.withLock({ $0.watches[path] == nil && !$0.isCancelled }) else { return false }
    // Without parents, and in its own lane: no observer of this process waits for a removal here.
    // One lane, because each has a thread when all places are compared.
    let watch = ChangeMonitor.shared.watch(
      path: path == Self.top ? root.path : root.path + "/" + path, parents: [],
      way: path == Self.top ? root.path : nil, lane: root.path + "/" + Self.top,
      prepare: {}, hear: { [weak self] in self?.hear($0, of: path) })
    state.withLock { if !$0.isCancelled { $0.watches[path] = watch } }
    return true
  }

  /// Ends the watches of a directory and everything below it.
  func leave(_ path: String) {
    guard state.withLock({ $0.watches[path] != nil }) else { return }
    leave { $0 == path || $0.hasPrefix(path + "/") }
  }

  /// Ends all watches except the container's own, because its path names another directory now.
  func leaveAll() { leave { $0 != Self.top } }

  private func leave(_ isLeft: (String) -> Bool) {
    // Released after the lock.
    let ended = state.withLock { state in
      state.watches.keys.filter(isLeft).compactMap { state.watches.removeValue(forKey: $0) }
    }
    for watch in ended { watch.cancel() }
  }

  func lookAgain(at name: FileName, of path: String) {
    var news = WatchNews()
    news.add(name)
    hear(news, of: path)
  }

  private func hear(_ news: WatchNews, of path: String) {
    state.withLock { state in
      if state.news[path] == nil { state.order.append(path) }
      state.news[path, default: WatchNews()].merge(news)
    }
    signal()
  }

  func take() -> [(path: String, news: WatchNews)] {
    state.withLock { state in
      defer { (state.order, state.news) = ([], [:]) }
      return state.order.compactMap { path in state.news[path].map { (path, $0) } }
    }
  }

  func cancel() {
    let ended = state.withLock { state in
      state.isCancelled = true
      defer { state.watches = [:] }
      return Array(state.watches.values)
    }
    for watch in ended { watch.cancel() }
  }
}
