import AppGroup
import Dispatch
import PropertyLists
import Synchronization

/// The calls of a session that have not ended: whoever takes one out of the table ends it, so each
/// ends once, whatever comes at the same time.
final class CallTable: Sendable {
  typealias Result = Swift.Result<PropertyListValue, PeerError>

  struct Call: Sendable {
    let peer: String
    /// The session's mailbox, which the answer goes to.
    let replyTo: String
    /// When it times out; nil for one whose caller looks at the clock itself.
    let deadline: ContinuousClock.Instant?
    /// Called once, perhaps on the monitor's thread, so it must be short.
    let end: @Sendable (Result) -> Void
    /// The mailbox that it was posted into, or is about to be.
    var address: String?
  }

  private struct State {
    var last: UInt64 = 0
    var calls: [UInt64: Call] = [:]
    /// The earliest deadline that a timer is set for.
    var timer: ContinuousClock.Instant?
  }

  private let state = Mutex(State())
  private let timedOut: @Sendable (UInt64, Call) -> Void

  /// - Parameter timedOut: gets the calls whose deadline has passed, taken out of the table; may block.
  init(timedOut: @escaping @Sendable (UInt64, Call) -> Void) {
    self.timedOut = timedOut
  }

  func insert(_ call: Call) -> UInt64 {
    let (id, timer) = state.withLock { state in
      state.last += 1
      state.calls[state.last] = call
      guard let deadline = call.deadline, state.timer.map({ deadline < $0 }) ?? true else {
        return (state.last, nil as ContinuousClock.Instant?)
      }
      state.timer = deadline
      return (state.last, deadline)
    }
    if let timer { wake(at: timer) }
    return id
  }

  /// Takes a call out, to end it.
  func remove(_ id: UInt64) -> Call? { state.withLock { $0.calls.removeValue(forKey: id) } }

  func hasCalls(postedTo address: String) -> Bool {
    state.withLock { $0.calls.values.contains { $0.address == address } }
  }

  /// Takes those out that were posted into a mailbox.
  func removeAll(postedTo address: String) -> [(UInt64, Call)] {
    state.withLock { state in
      let ended = state.calls.filter { $0.value.address == address }
      for id in ended.keys { state.calls[id] = nil }
      return ended.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
  }

  func removeAll() -> [(UInt64, Call)] {
    state.withLock { state in
      defer { state.calls = [:] }
      return state.calls.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
  }

  /// Notes where a call goes, unless it has ended.
  func assign(_ id: UInt64, to address: String) -> Bool {
    state.withLock { state in
      guard state.calls[id] != nil else { return false }
      state.calls[id]?.address = address
      return true
    }
  }

  func contains(_ id: UInt64) -> Bool { state.withLock { $0.calls[id] != nil } }

  var count: Int { state.withLock { $0.calls.count } }

  // MARK: Deadlines

  private func wake(at moment: ContinuousClock.Instant) {
    let wait = max(ContinuousClock.now.duration(to: moment), .zero)
    Blocking.timers.asyncAfter(deadline: .now() + wait.dispatchInterval) { [weak self] in
      self?.endOverdue(moment)
    }
  }

  // One timer for all: each call with one of its own would leave it behind for as long as its timeout.
  private func endOverdue(_ moment: ContinuousClock.Instant) {
    typealias Overdue = ([(key: UInt64, value: Call)], ContinuousClock.Instant?)
    let (overdue, timer) = state.withLock { state -> Overdue in
      // A later timer than the one that is set now: that one looks.
      guard state.timer == moment else { return ([], nil) }
      let now = ContinuousClock.now
      let overdue = state.calls.filter { $0.value.deadline.map { $0 <= now } ?? false }
      for id in overdue.keys { state.calls[id] = nil }
      state.timer = state.calls.values.compactMap(\.deadline).min()
      return (overdue.sorted { $0.key < $1.key }, state.timer)
    }
    if let timer { wake(at: timer) }
    guard !overdue.isEmpty else { return }
    let timedOut = timedOut
    Blocking.queue().async { for (id, call) in overdue { timedOut(id, call) } }
  }
}
