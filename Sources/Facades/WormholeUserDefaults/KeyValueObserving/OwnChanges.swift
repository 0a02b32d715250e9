/// The changes now being made through an object. The thread that makes each one reports it, so a
/// look for others' changes leaves it to that thread.
struct OwnChanges: Sendable {
  private var count = 0
  private(set) var lastNumber = 0
  /// Whether the last of them has to look for others' changes.
  private var isLookDue = false

  mutating func begin() {
    count += 1
    lastNumber += 1
  }

  /// - Returns: whether the caller has to look for others' changes.
  mutating func end() -> Bool {
    count -= 1
    guard count == 0, isLookDue else { return false }
    isLookDue = false
    return true
  }

  /// Begins a look for others' changes, which counts as long as `lastNumber` stays the same.
  ///
  /// - Returns: that number; nil if an own change looks at its end.
  mutating func look() -> Int? {
    isLookDue = count > 0
    return isLookDue ? nil : lastNumber
  }
}
