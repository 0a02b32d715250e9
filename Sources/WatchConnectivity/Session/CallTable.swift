import PeerConnectivity

/// The messages under way; each ends once, by its answer or because the session becomes inactive.
struct CallTable {
  private var next = 0
  private var calls: [Int: (handlers: MessageHandlers, call: PeerCall?)] = [:]

  mutating func begin(_ handlers: MessageHandlers) -> Int {
    next += 1
    calls[next] = (handlers, nil)
    return next
  }

  /// - Returns: false when it has ended already.
  mutating func keep(_ call: PeerCall, _ number: Int) -> Bool {
    guard let handlers = calls[number]?.handlers else { return false }
    calls[number] = (handlers, call)
    return true
  }

  /// - Returns: the handlers, one of which is to be called; nil when it has ended already.
  mutating func end(_ number: Int) -> MessageHandlers? {
    calls.removeValue(forKey: number)?.handlers
  }

  /// Ends all, in the order in which they began.
  mutating func endAll() -> [(handlers: MessageHandlers, call: PeerCall?)] {
    defer { calls = [:] }
    return calls.sorted { $0.key < $1.key }.map(\.value)
  }
}
