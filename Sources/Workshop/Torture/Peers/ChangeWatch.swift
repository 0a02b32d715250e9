import AppGroup
import EtcdClient
import Synchronization
import SystemCalls

/// A watch of all keys of the container, which follows how often each has changed. etcd counts the
/// changes of a key since it was made, so a change that the watch did not tell leaves a gap.
final class ChangeWatch: Sendable {
  private struct Seen {
    var version: Int64
    var modified: Int64
  }

  private struct State {
    var keys: [[UInt8]: Seen] = [:]
    var revision: Int64 = 0
    var watch: EtcdWatch?
    /// A compaction was faster, so that changes are missing as they may.
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

  /// Reads and watches, on a thread of its own, and again whenever the history is gone.
  func begin() {
    do {
      try startThread(name: "change watch") { [weak self] in
        while let self {
          if self.state.withLock(\.mustRead) { self.readAndWatch() }
          pauseThread(.milliseconds(20))
        }
      }
    } catch {
      recorder.noteOrEnd(.failed("a watch: \(error)"))
    }
  }

  private func readAndWatch() {
    do throws(EtcdError) {
      let found = try client.read(range, keysOnly: true, until: .now + .seconds(10))
      state.withLock { state in
        state.revision = found.revision
        state.keys = Dictionary(
          found.items.map { ($0.key, Seen(version: $0.version, modified: $0.modified)) }
        ) { $1 }
        state.mustRead = false
      }
      let watch = try client.watch(range, from: found.revision + 1) { [weak self] in self?.hear($0)
      }
      state.withLock { $0.watch = watch }
    } catch {
      // It is tried again.
      state.withLock { $0.mustRead = true }
    }
  }

  // On the thread of the watches.
  private func hear(_ news: EtcdNews) {
    switch news {
    case .events(let events):
      let wrong = state.withLock { state in events.compactMap { Self.take($0, &state) } }
      for entry in wrong { recorder.noteOrEnd(entry) }
      recorder.noteOrEnd(.did("watched changes"))
    case .resumed: return
    case .ended: state.withLock { $0.mustRead = true }
    }
  }

  /// - Returns: What is wrong with an event.
  private static func take(_ event: EtcdEvent, _ state: inout State) -> JournalEntry? {
    let item = event.keyValue
    let old = state.keys[item.key]
    defer { state.revision = max(state.revision, item.modified) }
    if item.modified < state.revision {
      return .backwards(
        "revision \(item.modified) of \(name(item)) came after \(state.revision)")
    }
    guard event.kind == .put else {
      state.keys[item.key] = nil
      return old == nil ? .missed("the making of \(name(item)), deleted at \(item.modified)") : nil
    }
    state.keys[item.key] = Seen(version: item.version, modified: item.modified)
    guard item.version == (old?.version ?? 0) + 1 else {
      return .missed(
        "\(name(item)) was told with change \(item.version) after \(old?.version ?? 0), "
          + "at revision \(item.modified)")
    }
    return nil
  }

  private static func name(_ item: KeyValue) -> String { String(decoding: item.key, as: UTF8.self) }

  /// Returns what the watch has not told, now that nobody changes anything that it does not tell soon.
  func behind() -> [String] {
    let now: EtcdClient.Content
    do throws(EtcdError) {
      now = try client.read(range, keysOnly: true, until: .now + .seconds(5))
    } catch {
      return ["etcd does not answer its watch's last look: \(error)"]
    }
    let (told, revision) = state.withLock { ($0.keys.mapValues(\.modified), $0.revision) }
    // What was changed since is on its way.
    guard revision < now.revision || now.items.contains(where: { told[$0.key] != $0.modified })
    else { return [] }
    let there = Dictionary(now.items.map { ($0.key, $0.modified) }) { $1 }
    guard there != told else { return [] }
    return ["its watch is at revision \(revision), etcd at \(now.revision)"]
  }
}
