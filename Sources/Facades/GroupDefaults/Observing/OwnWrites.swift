import Synchronization
import WormholePropertyLists

/// The keys that one object has written itself. With them its observers distinguish its own changes
/// from others, key by key, because one report may contain the changes of several writers.
///
/// A write is in flight from before it becomes visible until it has returned. An observer that
/// looks meanwhile may or may not see it. A later look sees it, or a value that was written over
/// it. So before each look the finished writes are set apart: if a key has another value than the
/// last of these wrote, another writer has overwritten it.
final class OwnWrites: Sendable {
  /// The value that a write left under a key; nil if it removed the key.
  struct Written: Hashable, Sendable {
    let value: PropertyListValue?
  }

  /// A write that has not returned: the contents before and after it.
  private struct InFlight {
    let old: Suite.Contents
    let new: Suite.Contents

    func wrote(_ value: PropertyListValue?, _ key: String) -> Bool {
      new[key] == value && old[key] != value
    }
  }

  /// The writes that one observer has yet to see.
  private struct Account {
    /// Finished before its present look.
    var expected: [String: Written] = [:]
    /// Finished since.
    var ended: [String: Written] = [:]
    /// Seen while in flight.
    var seen: [Int: Set<String>] = [:]
  }

  private struct State {
    var inFlight: [Int: InFlight] = [:]
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
    state.withLock { $0.inFlight[number] = InFlight(old: old, new: new) }
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
          state.accounts[observer]?.ended[key] = Written(value: write.new[key])
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
    state.withLock { state in
      guard var account = state.accounts.removeValue(forKey: observer) else { return }
      account.expected.merge(account.ended) { $1 }
      account.ended = [:]
      state.accounts[observer] = account
    }
  }

  /// Returns whether the changed value of a key was written by this object.
  func isOwn(_ value: PropertyListValue?, _ key: String, observer: Int) -> Bool {
    state.withLock { state in
      guard let account = state.accounts[observer] else { return false }
      let written = Written(value: value)
      // In flight, or finished after the look began.
      for (number, write) in state.inFlight
      where write.wrote(value, key) && account.seen[number]?.contains(key) != true {
        state.accounts[observer]?.seen[number, default: []].insert(key)
        return true
      }
      if account.ended[key] == written {
        state.accounts[observer]?.ended[key] = nil
        return true
      }
      return account.expected[key] == written
    }
  }

  /// Finishes a look: the observer has seen every write that had finished before it.
  func finishLook(_ observer: Int) {
    state.withLock { state in state.accounts[observer]?.expected = [:] }
  }
}
