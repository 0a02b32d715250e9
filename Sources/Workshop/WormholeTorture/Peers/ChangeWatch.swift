import Synchronization
import WormholeEtcd
import WormholeSystem

/// A watch of all of the container's keys, which misses no change.
final class ChangeWatch: Sendable {
  private struct State {
    var reported = ReportedChanges()
    var watch: EtcdWatch?
    /// Whether it has to begin: at first, and after a compaction that was faster, when changes may
    /// be missing.
    var mustRead = true
  }

  private let client: EtcdClient
  private let range: KeyRange
  private let recorder: Recorder
  private let state = Mutex(State())

  init(_ location: EtcdLocation, _ recorder: Recorder) {
    client = EtcdClient(EtcdConfiguration(endpoints: location.endpoints))
    range = .prefix(Array((location.prefix + "/").utf8))
    self.recorder = recorder
  }

  /// Reads and watches, on its own thread, and again whenever the history is gone.
  func begin() throws {
    try startThread(name: "change watch") { [weak self] in
      while let self {
        if self.state.withLock(\.mustRead) { self.readAndWatch() }
        pauseThread(.milliseconds(20))
      }
    }
  }

  private func readAndWatch() {
    do throws(EtcdError) {
      let found = try client.read(range, keysOnly: true, until: .now + .seconds(10))
      state.withLock { state in
        state.reported = ReportedChanges(found)
        state.mustRead = false
      }
      let watch = client.watch(range, after: found.moment) { [weak self] in self?.hear($0) }
      state.withLock { $0.watch = watch }
    } catch {
      // It is tried again.
      state.withLock { $0.mustRead = true }
    }
  }

  // On the watches' thread.
  private func hear(_ news: EtcdNews) {
    switch news {
    case .events(let events):
      let wrong = state.withLock { state in events.compactMap { state.reported.take($0) } }
      for entry in wrong { recorder.noteOrEnd(entry) }
      recorder.noteOrEnd(.did("watched changes"))
    case .resumed: return
    case .ended: state.withLock { $0.mustRead = true }
    }
  }

  /// Returns the changes that the watch has not reported yet.
  func behind() -> [String] {
    do throws(EtcdError) {
      let now = try client.read(range, keysOnly: true, until: .now + .seconds(5))
      let reported = state.withLock(\.reported)
      return reported.lacks(now)
        ? ["its watch is at revision \(reported.revision), etcd at \(now.revision)"] : []
    } catch {
      return ["etcd does not answer its watch's last look: \(error)"]
    }
  }
}

/// How often each key has changed, according to a watch. etcd counts the changes of a key since it
/// was made, so an unreported change leaves a gap.
struct ReportedChanges {
  private var versions: [[UInt8]: Int64] = [:]
  private(set) var revision: Int64 = 0

  init() {}

  init(_ content: EtcdClient.Content) {
    revision = content.revision
    versions = Dictionary(content.items.map { ($0.key, $0.version) }) { $1 }
  }

  /// - Returns: The fault of an event.
  mutating func take(_ event: EtcdEvent) -> JournalEntry? {
    let item = event.keyValue
    let name = String(decoding: item.key, as: UTF8.self)
    guard item.modified >= revision else {
      return .broke(.forwards, "revision \(item.modified) of \(name) came after \(revision)")
    }
    revision = item.modified
    let last = versions[item.key] ?? 0
    guard event.kind == .put else {
      versions[item.key] = nil
      return last == 0
        ? .broke(.everyChange, "the making of \(name), deleted at \(item.modified)") : nil
    }
    versions[item.key] = item.version
    guard item.version != last + 1 else { return nil }
    return .broke(
      .everyChange,
      "\(name) has change \(item.version) after \(last), at revision \(item.modified)")
  }

  /// Whether the keys have changes that the watch has not reported.
  func lacks(_ content: EtcdClient.Content) -> Bool {
    // Later reports show more.
    revision <= content.revision
      && versions != Dictionary(content.items.map { ($0.key, $0.version) }) { $1 }
  }
}
