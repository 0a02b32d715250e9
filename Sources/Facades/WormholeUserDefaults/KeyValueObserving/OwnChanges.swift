/// The changes that are made through an object now. Each is reported by the thread that makes it, so a look
/// for the changes of others leaves it to that thread.
struct OwnChanges: Sendable {
  private var count = 0
  private(set) var lastNumber = 0
  /// Whether the last of them has to look for changes of others.
  private var isLookDue = false

  mutating func begin() {
    count += 1
    lastNumber += 1
  }

  /// - Returns: whether the caller has to look for changes of others.
  mutating func end() -> Bool {
    count -= 1
    guard count == 0, isLookDue else { return false }
    isLookDue = false
    return true
  }

  /// Begins a look for changes of others, which counts as long as `lastNumber` stays the same.
  ///
  /// - Returns: that number; nil if an own change looks at its end.
  mutating func look() -> Int? {
    isLookDue = count > 0
    return isLookDue ? nil : lastNumber
  }
}
