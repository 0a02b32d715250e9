import Synchronization
import Wormhole
import WormholePropertyLists

/// The last reported state of one observer, and the changes still to be reported.
///
/// Its looks follow one another. Each look reads the current state, so an event is only a hint.
final class ChangeTracker: Sendable {
  private let suite: Suite
  /// The only observed key; nil for all.
  private let key: String?
  private let last: Mutex<Suite.State>
  private let observer: Int

  /// - Parameter startsWithCurrent: Whether the current values count as new.
  init(_ suite: Suite, key: String?, startsWithCurrent: Bool) throws {
    self.suite = suite
    self.key = key
    observer = suite.ownWrites.open()
    do {
      last = Mutex(startsWithCurrent ? Suite.State() : try suite.state())
    } catch {
      suite.ownWrites.close(observer)
      throw error
    }
  }

  deinit { suite.ownWrites.close(observer) }

  /// Returns the changes since the last look.
  ///
  /// - Throws: As `Suite.contents`; a later look then returns the changes.
  func look() throws -> [DefaultsChange] {
    suite.ownWrites.prepareLook(observer)
    return changes(to: try suite.state())
  }

  /// Returns the changes since the last look, for a task.
  func lookForTask() async throws -> [DefaultsChange] {
    suite.ownWrites.prepareLook(observer)
    return changes(to: try await suite.stateForTask())
  }

  private func changes(to state: Suite.State) -> [DefaultsChange] {
    let lastState = last.withLock { last in
      defer { last = state }
      return last
    }
    defer { suite.ownWrites.finishLook(observer) }
    let publisher = state.publication?.publisher(since: lastState.publication)
    let (before, now) = (lastState.contents, state.contents)
    let keys =
      key.map { before[$0] == now[$0] ? [] : [$0] } ?? now.keys(differingFrom: before)
    return keys.map { key in
      DefaultsChange(
        key: key, oldValue: before[key], newValue: now[key],
        isOwn: suite.ownWrites.isOwn(now[key], key, observer: observer), publisher: publisher)
    }
  }
}

extension Suite.Contents {
  /// Returns the keys that differ, sorted.
  func keys(differingFrom old: Suite.Contents) -> [String] {
    var keys = compactMap { key, value in old[key] == value ? nil : key }
    keys += old.keys.filter { self[$0] == nil }
    return keys.sorted()
  }
}
