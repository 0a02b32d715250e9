/// When a sender removes its expired records: after the first send and then once an hour, and only a
/// few of them, because a send must not wait for much.
package struct RecordExpiry: Sendable {
  /// How many are removed.
  package static let limit = 64

  private var due = ContinuousClock.now

  package init() {}

  /// Returns whether it is time; once.
  package mutating func begin() -> Bool {
    guard ContinuousClock.now >= due else { return false }
    due = .now + .seconds(3_600)
    return true
  }
}
