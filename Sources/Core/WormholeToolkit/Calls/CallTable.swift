import Wormhole

/// The calls of an endpoint that have not ended. The thread that takes a call out of the table ends
/// it, so each call ends exactly once, whatever happens at the same time.
struct CallTable {
  struct Call: Sendable {
    /// A word chosen by the client: calls with the same word can be ended together.
    let subject: String
    let replyTo: String
    /// When it times out; nil if its caller watches the clock itself.
    let deadline: ContinuousClock.Instant?
    /// Called once, possibly on the monitor's thread, so it must be short.
    let end: @Sendable (CallEnd) -> Void
    /// The process that it was posted to, or is about to be.
    var callee: MailboxSender?
    var phase = Phase.waiting

    enum Phase { case waiting, posting, posted }

    fileprivate mutating func beginPosting(to callee: MailboxSender) -> String {
      self.callee = callee
      phase = .posting
      return replyTo
    }
  }

  private(set) var calls: [UInt64: Call] = [:]
  private var last: UInt64 = 0
  /// Calls that ended without an answer while being posted; their callees must still be notified.
  private var endedWhilePosted: Set<UInt64> = []

  mutating func insert(_ call: Call) -> UInt64 {
    last += 1
    calls[last] = call
    return last
  }

  /// When the next call times out.
  var deadline: ContinuousClock.Instant? { calls.values.compactMap(\.deadline).min() }

  // MARK: Ending

  mutating func takeAnswered(_ id: UInt64) -> Call? { calls.removeValue(forKey: id) }

  /// Removes a call that ends without an answer.
  @discardableResult
  mutating func take(_ id: UInt64) -> Call? {
    guard let call = calls.removeValue(forKey: id) else { return nil }
    // Excludes: a notice of the end that overtakes the call itself.
    if call.phase == .posting { endedWhilePosted.insert(id) }
    return call
  }

  /// Removes calls that end without an answer.
  mutating func take(where matches: (Call) -> Bool) -> [(UInt64, Call)] {
    let taken = calls.filter { matches($0.value) }.map { $0 }.ordered { $0.key < $1.key }
    for (id, _) in taken { take(id) }
    return taken.map { ($0.key, $0.value) }
  }

  // MARK: Posting

  /// Records where a call is about to be posted, unless it has ended: if the callee ends from now
  /// on, the call ends as well.
  ///
  /// - Returns: the address that its answer goes to; nil if it has ended.
  mutating func beginPosting(_ id: UInt64, to callee: MailboxSender) -> String? {
    calls[id]?.beginPosting(to: callee)
  }

  /// - Returns: whether it has ended without an answer in the meantime.
  mutating func endPosting(_ id: UInt64, isPosted: Bool) -> Bool {
    calls[id]?.phase = isPosted ? .posted : .waiting
    return endedWhilePosted.remove(id) != nil
  }
}
