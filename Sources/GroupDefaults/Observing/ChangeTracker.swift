import PropertyLists
import Synchronization

/// What one observer was told last, and what it is to be told now.
///
/// Its looks follow one another; each reads the truth anew, so whatever woke it up is only a hint.
final class ChangeTracker: Sendable {
  private let suite: Suite
  /// The only key that matters; nil for all.
  private let key: String?
  private let last: Mutex<Suite.Contents>
  private let observer: Int

  /// - Parameter startsWithCurrent: whether what is there now counts as new.
  init(_ suite: Suite, key: String?, startsWithCurrent: Bool) throws {
    self.suite = suite
    self.key = key
    observer = suite.ownWrites.open()
    do {
      last = Mutex(startsWithCurrent ? [:] : try suite.contents())
    } catch {
      suite.ownWrites.close(observer)
      throw error
    }
  }

  deinit { suite.ownWrites.close(observer) }

  /// What has changed since the last look.
  ///
  /// - Throws: as `Suite.contents`; the changes are told by a later look then.
  func look() throws -> [DefaultsChange] {
    suite.ownWrites.prepareLook(observer)
    return changes(to: try suite.contents())
  }

  /// The same for a task.
  func lookForTask() async throws -> [DefaultsChange] {
    suite.ownWrites.prepareLook(observer)
    return changes(to: try await suite.contentsForTask())
  }

  private func changes(to now: Suite.Contents) -> [DefaultsChange] {
    let before = last.withLock { last in
      defer { last = now }
      return last
    }
    defer { suite.ownWrites.finishLook(observer) }
    let keys =
      key.map { before[$0] == now[$0] ? [] : [$0] } ?? Difference.keys(from: before, to: now)
    return keys.map { key in
      DefaultsChange(
        key: key, oldValue: before[key], newValue: now[key],
        isOwn: suite.ownWrites.isOwn(now[key], key, observer))
    }
  }
}
