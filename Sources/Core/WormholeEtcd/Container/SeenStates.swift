/// A key at a moment of the cluster.
struct SeenState: Sendable {
  /// Nil if it does not exist.
  let item: KeyValue?
  let seen: EtcdMoment
}

/// The last states of a container's values that this process saw: with them a change needs no read
/// before, whichever `Value` makes it.
struct SeenStates: Sendable {
  /// Their largest contents together.
  private static let maximumBytes = 4 << 20
  /// A larger content is read again.
  private static let largest = 256 << 10
  private static let maximumCount = 4_096

  private var states: [[UInt8]: SeenState] = [:]
  /// The keys in the order in which they were seen first.
  private var order: ArraySlice<[UInt8]> = []
  private var bytes = 0

  subscript(key: [UInt8]) -> SeenState? { states[key] }

  /// Notes a state, unless a later one is known.
  mutating func know(_ state: SeenState, of key: [UInt8]) {
    let old = states[key]
    if let old, state.seen < old.seen { return }
    let size = Self.size(state)
    guard size <= Self.largest else {
      // Its place in the order stays.
      states[key] = nil
      bytes -= old.map(Self.size) ?? 0
      return
    }
    states[key] = state
    bytes += size - (old.map(Self.size) ?? 0)
    if old == nil { order.append(key) }
    while bytes > Self.maximumBytes || order.count > Self.maximumCount, let first = order.popFirst()
    {
      bytes -= states.removeValue(forKey: first).map(Self.size) ?? 0
    }
  }

  private static func size(_ state: SeenState) -> Int { state.item?.value.count ?? 0 }
}
