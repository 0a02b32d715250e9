import PropertyLists
import Synchronization

/// Which keys one object has written itself, so that its observers can tell its own changes from
/// those of others, key by key: what an observer is told at once may come from several writers.
///
/// A write is in flight from before it can be seen until it has returned. An observer that looks
/// meanwhile may or may not see it; after that it does, or it sees what was written over it. So
/// before each look, the writes that have ended are set apart: a key with another value than the
/// last of these wrote was written over by somebody else.
final class OwnWrites: Sendable {
  /// What a write left under a key; nil when it removed it.
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

  /// What one observer has yet to see.
  private struct Account {
    /// Ended before its present look.
    var expected: [String: Written] = [:]
    /// Ended since.
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

  /// A write begins.
  func begin() -> Int { state.withLock { $0.nextNumber() } }

  /// What the write is about to publish; again when it has to be made again.
  func note(_ number: Int, from old: Suite.Contents, to new: Suite.Contents) {
    state.withLock { $0.inFlight[number] = InFlight(old: old, new: new) }
  }

  /// The write turned out to change nothing.
  func forget(_ number: Int) { state.withLock { $0.inFlight[number] = nil } }

  /// The write has returned.
  func end(_ number: Int, isPublished: Bool) {
    state.withLock { state in
      guard let write = state.inFlight.removeValue(forKey: number) else { return }
      guard !state.accounts.isEmpty else { return }
      let keys = isPublished ? Difference.keys(from: write.old, to: write.new) : []
      for observer in state.accounts.keys {
        let seen = state.accounts[observer]?.seen.removeValue(forKey: number) ?? []
        for key in keys where !seen.contains(key) {
          state.accounts[observer]?.ended[key] = Written(value: write.new[key])
        }
      }
    }
  }

  // MARK: For an observer

  /// Begins to keep account for an observer.
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

  /// The observer is going to look: what has ended by now, it must see.
  func prepareLook(_ observer: Int) {
    state.withLock { state in
      guard var account = state.accounts.removeValue(forKey: observer) else { return }
      account.expected.merge(account.ended) { $1 }
      account.ended = [:]
      state.accounts[observer] = account
    }
  }

  /// Whether what the observer found changed under a key is what was written here.
  func isOwn(_ value: PropertyListValue?, _ key: String, _ observer: Int) -> Bool {
    state.withLock { state in
      guard let account = state.accounts[observer] else { return false }
      let written = Written(value: value)
      // In flight, or ended after the look had begun.
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

  /// The observer has looked: of what had ended before, nothing is left to see.
  func finishLook(_ observer: Int) {
    state.withLock { state in state.accounts[observer]?.expected = [:] }
  }
}
