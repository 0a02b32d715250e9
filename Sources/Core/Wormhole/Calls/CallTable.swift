import Dispatch
import Synchronization
import WormholeSystem

/// The calls of an endpoint that have not ended. The thread that takes a call out of the table ends
/// it, so each call ends exactly once, whatever happens at the same time.
final class CallTable: Sendable {
  struct Call: Sendable {
    /// A word chosen by the client: calls with the same word can be ended together.
    let subject: String
    let replyTo: String
    /// When it times out; nil if its caller watches the clock itself.
    let deadline: ContinuousClock.Instant?
    /// Called once, possibly on the monitor's thread, so it must be short.
    let end: @Sendable (CallEnd) -> Void
    /// The process that it was posted to, or is about to be.
    var callee: MailboxOutlet?
    var phase = Phase.waiting

    enum Phase { case waiting, posting, posted }
  }

  private struct State {
    var last: UInt64 = 0
    var calls: [UInt64: Call] = [:]
    /// Calls that ended without an answer while they were being posted; their callees are still to
    /// be notified.
    var endedWhilePosted: Set<UInt64> = []

    mutating func take(where matches: (Call) -> Bool) -> [(UInt64, Call)] {
      let taken = calls.filter { matches($0.value) }.sorted { $0.key < $1.key }
      for (id, _) in taken { take(id) }
      return taken.map { ($0.key, $0.value) }
    }

    @discardableResult
    mutating func take(_ id: UInt64) -> Call? {
      guard let call = calls.removeValue(forKey: id) else { return nil }
      // Excludes: a notice of the end that overtakes the call itself.
      if call.phase == .posting { endedWhilePosted.insert(id) }
      return call
    }
  }

  private let state = Mutex(State())
  private let timedOut: @Sendable ([(UInt64, Call)]) -> Void
  /// One timer for all: a timer per call would remain behind for as long as the call's timeout.
  private let alarm = AlarmLatch()

  /// - Parameter timedOut: called with the calls whose deadline has passed, which are no longer in
  ///   the table; may block.
  init(timedOut: @escaping @Sendable ([(UInt64, Call)]) -> Void) {
    self.timedOut = timedOut
    alarm.call { [weak self] in self?.endOverdue() }
  }

  func insert(_ call: Call) -> UInt64 {
    let id = state.withLock { state in
      state.last += 1
      state.calls[state.last] = call
      return state.last
    }
    if let deadline = call.deadline { alarm.raise(at: deadline) }
    return id
  }

  // MARK: Ending

  /// Removes a call that was answered.
  func answered(_ id: UInt64) -> Call? { state.withLock { $0.calls.removeValue(forKey: id) } }

  /// Removes a call that ends without an answer.
  func remove(_ id: UInt64) -> Call? { state.withLock { $0.take(id) } }

  /// Removes the calls that were posted to certain callees.
  func removeAll(where isConcerned: (MailboxOutlet) -> Bool) -> [(UInt64, Call)] {
    state.withLock { $0.take { $0.callee.map(isConcerned) ?? false } }
  }

  func removeAll(about subject: String) -> [(UInt64, Call)] {
    state.withLock { $0.take { $0.subject.utf8.elementsEqual(subject.utf8) } }
  }

  func removeAll() -> [(UInt64, Call)] { state.withLock { $0.take { _ in true } } }

  func hasCalls(where isConcerned: (MailboxOutlet) -> Bool) -> Bool {
    state.withLock { $0.calls.values.contains { $0.callee.map(isConcerned) ?? false } }
  }

  func contains(_ id: UInt64) -> Bool { state.withLock { $0.calls[id] != nil } }

  var count: Int { state.withLock { $0.calls.count } }

  // MARK: Posting

  /// Records where a call is about to be posted, unless it has ended: if the callee ends from now
  /// on, the call ends as well.
  ///
  /// - Returns: the address that its answer goes to; nil if it has ended.
  func beginPosting(_ id: UInt64, to callee: MailboxOutlet) -> String? {
    state.withLock { state in
      state.calls[id]?.callee = callee
      state.calls[id]?.phase = .posting
      return state.calls[id]?.replyTo
    }
  }

  /// - Returns: whether it has ended without an answer in the meantime.
  func endPosting(_ id: UInt64, isPosted: Bool) -> Bool {
    state.withLock { state in
      state.calls[id]?.phase = isPosted ? .posted : .waiting
      return state.endedWhilePosted.remove(id) != nil
    }
  }

  // MARK: Deadlines

  private func endOverdue() {
    let now = ContinuousClock.now
    let (overdue, next) = state.withLock { state in
      let overdue = state.take { $0.deadline.map { $0 <= now } ?? false }
      return (overdue, state.calls.values.compactMap(\.deadline).min())
    }
    if let next { alarm.raise(at: next) }
    guard !overdue.isEmpty else { return }
    let timedOut = timedOut
    Blocking.queue().async { timedOut(overdue) }
  }
}
