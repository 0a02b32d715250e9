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

/// The keys that one object itself has written. With them its observers distinguish its own changes
/// from others, key by key, because one report may contain several writers' changes.
///
/// A write is in flight from before it becomes visible until it has returned. An observer that
/// looks meanwhile may or may not see it. A later look sees it, or a value that was written over
/// it. So before each look the finished writes are set apart: if a key has a value other than the
/// last of these wrote, another writer has overwritten it.
final class OwnWrites: Sendable {
  /// The writes that one observer has yet to see: the value left under each key, nil if the key was
  /// removed.
  private struct Account {
    /// Finished before its current look.
    var expected: [String: PropertyListValue?] = [:]
    /// Finished since.
    var ended: [String: PropertyListValue?] = [:]
    /// Seen while in flight.
    var seen: [Int: Set<String>] = [:]

    mutating func prepareLook() {
      expected.merge(ended) { $1 }
      ended = [:]
    }
  }

  private struct State {
    /// The writes that have not returned: the contents before and after each.
    var inFlight: [Int: (old: Suite.Contents, new: Suite.Contents)] = [:]
    var accounts: [Int: Account] = [:]
    var lastNumber = 0

    mutating func nextNumber() -> Int {
      lastNumber += 1
      return lastNumber
    }
  }

  private let state = Mutex(State())

  // MARK: For the writer

  /// Begins a write.
  func begin() -> Int { state.withLock { $0.nextNumber() } }

  /// Notes the contents that the write is about to publish; called again if the write is repeated.
  func note(_ number: Int, from old: Suite.Contents, to new: Suite.Contents) {
    state.withLock { $0.inFlight[number] = (old, new) }
  }

  /// Drops a write that turned out to change nothing.
  func forget(_ number: Int) { state.withLock { $0.inFlight[number] = nil } }

  /// Ends a write that has returned.
  func end(_ number: Int, isPublished: Bool) {
    state.withLock { state in
      guard let write = state.inFlight.removeValue(forKey: number) else { return }
      guard !state.accounts.isEmpty else { return }
      let keys = isPublished ? write.new.keys(differingFrom: write.old) : []
      for observer in state.accounts.keys {
        let seen = state.accounts[observer]?.seen.removeValue(forKey: number) ?? []
        for key in keys where !seen.contains(key) {
          state.accounts[observer]?.ended.updateValue(write.new[key], forKey: key)
        }
      }
    }
  }

  // MARK: For an observer

  /// Opens an account for an observer.
  func open() -> Int {
    state.withLock { state in
      let observer = state.nextNumber()
      state.accounts[observer] = Account()
      return observer
    }
  }

  func close(_ observer: Int) {
    state.withLock { state in state.accounts[observer] = nil }
  }

  /// Prepares a look: the observer must see every write that has finished by now.
  func prepareLook(_ observer: Int) {
    state.withLock { $0.accounts[observer]?.prepareLook() }
  }

  /// Returns whether the changed value of a key was written by this object.
  func isOwn(_ value: PropertyListValue?, _ key: String, observer: Int) -> Bool {
    state.withLock { state in
      guard let account = state.accounts[observer] else { return false }
      // In flight, or finished after the look began.
      for (number, write) in state.inFlight
      where write.new[key] == value && write.old[key] != value
        && account.seen[number]?.contains(key) != true
      {
        state.accounts[observer]?.seen[number, default: []].insert(key)
        return true
      }
      if account.ended[key] == .some(value) {
        state.accounts[observer]?.ended.removeValue(forKey: key)
        return true
      }
      return account.expected[key] == .some(value)
    }
  }

  /// Finishes a look: the observer has seen every write that had finished before it.
  func finishLook(_ observer: Int) {
    state.withLock { state in state.accounts[observer]?.expected = [:] }
  }
}
