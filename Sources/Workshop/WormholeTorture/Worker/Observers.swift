import Dispatch
import Synchronization
import Wormhole
import WormholeSystem
import WormholeWorkshop

/// The values and notifications that a worker receives, recorded as reads of separate processes.
///
/// In a directory a delivered value was read after the previous one had been handled and before it
/// is itself handled. Some order of all operations must explain it between these two moments. On
/// etcd an observer may be behind, but it never receives an older revision after a newer one.
final class Observers: Sendable {
  private struct State {
    var latest: [String: HistoryValue?] = [:]
    var revisions: [Int: UInt64] = [:]
    var heard: [String: Int] = [:]
  }

  private let container: SharedContainer
  private let recorder: Recorder
  private let count = Atomic(0)
  private let state = Mutex(State())
  private let kept = Mutex<[any Sendable]>([])
  private let queue = DispatchQueue(label: "torture.observers", attributes: .concurrent)

  init(_ container: SharedContainer, _ recorder: Recorder) {
    self.container = container
    self.recorder = recorder
  }

  /// Returns the handler of an observer, which has received nothing yet.
  private func receiver(_ name: String, of key: String) -> @Sendable (PlainSnapshot) -> Void {
    state.withLock { $0.latest["\(name) of \(key)"] = .some(nil) }
    let observer = count.wrappingAdd(1, ordering: .relaxed).newValue
    let last = Mutex(bootTimeNanoseconds())
    return { [weak self] snapshot in
      let before = last.withLock { $0 }
      self?.received(key, observer, snapshot: snapshot, since: before, name: name)
      last.withLock { $0 = bootTimeNanoseconds() }
    }
  }

  /// Observes a key with a handler.
  func observe(_ key: String) throws {
    let observation = try container.value(key).observe(
      startsWithCurrent: true, on: queue, receiver("observer", of: key))
    kept.withLock { $0.append(observation) }
  }

  /// Observes a key with `for await`.
  func follow(_ key: String) throws {
    let receive = receiver("sequence", of: key)
    let snapshots = try container.value(key).snapshots(startsWithCurrent: true)
    let task = Task { for await snapshot in snapshots { receive(snapshot) } }
    kept.withLock { $0.append(task) }
  }

  private func received(
    _ key: String, _ observer: Int, snapshot: PlainSnapshot, since: UInt64, name: String
  ) {
    do {
      let now = bootTimeNanoseconds()
      let number = try Content.number(snapshot.propertyList(), in: key)
      if recorder.isOnEtcd { checkOrder(of: snapshot, observer, name, key: key) }
      let read = HistoryOperation(
        process: Workload.process(life: recorder.life, observer: observer), key: key, call: .read,
        invocation: since, outcome: .completed(.value(number), at: now))
      try recorder.note(.observed(read))
      state.withLock { $0.latest["\(name) of \(key)"] = .some(number) }
    } catch let error as Content.Torn {
      recorder.noteOrEnd(.broke(.whole, "observer: \(error)"))
    } catch {
      // It is called when it can no longer follow the key, and again when it can.
      recorder.noteOrEnd(recorder.entry(error, in: "observer of \(key)"))
    }
  }

  private func checkOrder(
    of snapshot: PlainSnapshot, _ observer: Int, _ name: String, key: String
  ) {
    guard let revision = snapshot.version?.revision else { return }
    let last = state.withLock { exchange(&$0.revisions[observer], with: revision) } ?? 0
    guard revision < last else { return }
    recorder.noteOrEnd(
      .broke(.forwards, "\(name) of \(key) received revision \(revision) after \(last)"))
  }

  func listen(_ name: String) throws {
    let registration = try container.notification(name).observe(on: queue) { [weak self] _ in
      self?.state.withLock { $0.heard[name, default: 0] += 1 }
    }
    state.withLock { $0.heard[name] = 0 }
    kept.withLock { $0.append(registration) }
  }

  func heard() -> [String: Int] { state.withLock { $0.heard } }

  /// Returns the observers that have not received the last value yet.
  func behind(_ last: [String: HistoryValue]) -> [String] {
    state.withLock { state in
      state.latest.compactMap { name, received in
        guard let key = name.split(separator: " ", maxSplits: 2).last.map(String.init),
          let expected = last[key], received != expected
        else { return nil }
        return "\(name) last received \(received.map(String.init) ?? "nothing"), not \(expected)"
      }.sorted()
    }
  }
}
