/// The last keys that this process took or delivered. With them it recognizes keys that a snapshot
/// brings back, even before it can notice the new history.
struct LatestKeys: Sendable {
  private var all: Set<[UInt8]> = []
  private var order: ArraySlice<[UInt8]> = []
  static let limit = 4_096

  func contains(_ key: [UInt8]) -> Bool { all.contains(key) }

  /// - Returns: Whether the key was missing.
  @discardableResult
  mutating func insert(_ key: [UInt8]) -> Bool {
    guard all.insert(key).inserted else { return false }
    order.append(key)
    if order.count > Self.limit { all.remove(order.removeFirst()) }
    return true
  }
}
