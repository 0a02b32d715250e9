import PeerConnectivity

/// The messages under way, by which they are cancelled when the session becomes inactive.
struct CallTable {
  private var next = 0
  /// Nil from the moment of the decision until there is something to cancel.
  private var calls: [Int: PeerCall?] = [:]

  mutating func reserve() -> Int {
    next += 1
    calls.updateValue(nil, forKey: next)
    return next
  }

  mutating func keep(_ call: PeerCall, _ number: Int) {
    // It may have ended already.
    if calls.keys.contains(number) { calls.updateValue(call, forKey: number) }
  }

  mutating func end(_ number: Int) { calls.removeValue(forKey: number) }

  var all: [PeerCall] { calls.values.compactMap(\.self) }
}
