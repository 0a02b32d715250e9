import Dispatch
import Synchronization
package import Wormhole
package import WormholePropertyLists
import WormholeSystem

/// One end of calls between living processes: it makes calls and receives them. Thread-safe.
///
/// **Address.** An endpoint has a mailbox from `open()` on. Other processes learn its address from
/// the content of a presence: the presence, not calls, says which process has an address.
///
/// **A call** runs as follows: `begin` enters it in the table of calls under way; `post` posts it
/// to a callee; it ends once, with a `CallEnd`. The callee's endpoint hands an `IncomingCall` to
/// its handler, at most once, and in the order in which one caller posted.
///
/// **What ends a call**, whichever comes first: the answer; its deadline; `cancel`; `close`; the
/// death of the callee, if the endpoint watches it (`watchedOutlet`); or the client (`endCalls`).
/// The callee is notified of every end except the answer.
///
/// **What ends an incoming call** for its callee (`IncomingCall.onEnd`): the caller no longer
/// waits, for one of these reasons, or it has died. With `answer(_:isLast: false)` an answered call
/// continues until its caller releases it or dies.
///
/// **A notice** is not answered, and is delivered even if its sender has ended in the meantime.
///
/// **What a crash leaves**: the mailbox of the dead process, see `MailboxDirectory`. No part of a
/// call outlives its caller or its callee.
package final class CallEndpoint: Sendable {
  package typealias Handler = @Sendable (IncomingCall) -> Void

  private struct Open {
    weak var call: IncomingCall?
    let bytes: Int
  }

  private struct State {
    var open: [CallKey: Open] = [:]
    /// The bytes of all open calls.
    var bytes = 0
    var outlets: [String: MailboxSender] = [:]
  }

  /// Further incoming calls are refused while this many are unanswered.
  private static let maximumOpen = 10_000
  /// The same for their bytes: as many as may wait in a mailbox.
  package static let maximumBytes = 256 << 20
  /// How many callers are remembered at a time; beyond that, only those with calls under way.
  private static let maximumOutlets = 1_000

  private let container: SharedContainer
  private let acceptedBytes: Int
  private let handler: Handler
  private let noticeHandler: @Sendable (PropertyListValue) -> Void
  private let calls = Mutex(CallTable())
  /// One timer for all calls: a timer per call would remain behind for as long as its timeout.
  private let alarm = WakeLatch()
  private let mailbox = Mutex<(any Mailbox)?>(nil)
  private let state = Mutex(State())

  /// Creates an endpoint; it takes no calls before `open()`.
  ///
  /// - Parameters:
  ///   - bytes: How many bytes all unanswered calls may have; further calls are refused.
  ///   - notice: called with each notice; see `handler`.
  ///   - handler: called with each call, one at a time, possibly on the monitor's thread, so it
  ///     must be short.
  package init(
    in container: SharedContainer, bytes: Int = maximumBytes,
    notice: @escaping @Sendable (PropertyListValue) -> Void = { _ in },
    handler: @escaping Handler
  ) {
    self.container = container
    acceptedBytes = bytes
    self.handler = handler
    noticeHandler = notice
    // On a thread that may wait, because the endpoint may end there.
    alarm.call { [weak self] in Blocking.queue().async { [weak self] in self?.endOverdue() } }
  }

  deinit { close() }

  /// Creates the mailbox if it is missing.
  ///
  /// - Returns: its address.
  /// - Throws: `AppGroupError` for errors of the file system.
  @discardableResult
  package func open(until deadline: ContinuousClock.Instant? = nil) throws -> String {
    if let address { return address }
    let limited = container.limited(until: deadline)
    let new = try limited.makeMailbox { [weak self] in self?.receive($0) }
    let first = mailbox.withLock { mailbox in
      if mailbox == nil { mailbox = new }
      return mailbox ?? new
    }
    // Another thread was faster.
    if first !== new { new.end(asDeath: false) }
    return first.address
  }

  /// The address, while the endpoint is open.
  package var address: String? { mailbox.withLock { $0?.address } }

  /// Ends all calls: those under way here as `closed`, those of other processes as if this process
  /// had died. The endpoint may be opened again, with a new address.
  package func close() { end(asDeath: false) }

  /// Ends all calls: for other processes like the death of this one, here like `close`.
  package func abandon() { end(asDeath: true) }

  private func end(asDeath: Bool) {
    mailbox.withLock { $0.take() }?.end(asDeath: asDeath)
    // Their callees see that the mailbox is gone.
    for (_, call) in calls.withLock({ $0.take { _ in true } }) { call.end(.closed) }
    let (incoming, outlets) = state.withLock {
      ($0.open.values.compactMap(\.call), exchange(&$0.outlets, with: [:]))
    }
    for call in incoming { call.end() }
    _ = outlets
  }

  // MARK: Asking

  /// Returns the other end of calls at an address. When it ends, calls to it end as `died`, and
  /// incoming calls from it are over.
  ///
  /// - Returns: nil if it has ended, or if the text cannot be an address.
  /// - Throws: `AppGroupError` or `Errno` for errors of the file system.
  /// - Complexity: for a new one, two opens, a watch and a flock.
  package func watchedOutlet(to address: String) throws -> MailboxSender? {
    if let known = state.withLock({ $0.outlets[address] }) { return known }
    let end = try container.observeEnd(ofMailbox: address) { [weak self] in
      if !LeaseFault.ignoringEnds.isActive { self?.ended(address) }
    }
    guard let end, let new = MailboxSender(in: container, to: address, notifying: end) else {
      return nil
    }
    // Released outside the lock, because that ends their watches.
    _ = state.withLock { state in
      var dropped: [MailboxSender] = []
      if state.outlets.count >= Self.maximumOutlets {
        let needed = Set(state.open.keys.map(\.replyTo))
        for old in state.outlets.keys where !needed.contains(old) {
          if let outlet = state.outlets.removeValue(forKey: old) { dropped.append(outlet) }
        }
      }
      if let former = state.outlets.updateValue(new, forKey: address) { dropped.append(former) }
      return dropped
    }
    return new
  }

  /// Begins a call, which is posted later.
  ///
  /// - Parameters:
  ///   - subject: a word chosen by the client, for `endCalls(about:as:)`.
  ///   - deadline: when it times out; nil if the caller watches the clock itself.
  ///   - end: called once, possibly on the monitor's thread, so it must be short.
  /// - Returns: the id of the call in this process.
  /// - Throws: see `open`.
  package func begin(
    about subject: String = "", until deadline: ContinuousClock.Instant?,
    _ end: @escaping @Sendable (CallEnd) -> Void
  ) throws -> UInt64 {
    let call = CallTable.Call(
      subject: subject, replyTo: try open(), deadline: deadline, end: end)
    let id = calls.withLock { $0.insert(call) }
    if let deadline { alarm.raise(at: deadline) }
    return id
  }

  private func endOverdue() {
    let now = ContinuousClock.now
    let (overdue, next) = calls.withLock { calls in
      let overdue = calls.take { $0.deadline.map { $0 <= now } ?? false }
      return (overdue, calls.deadline)
    }
    if let next { alarm.raise(at: next) }
    for (id, call) in overdue { Self.end(id, call, end: .timedOut) }
  }

  /// Posts a call that has begun; one that has ended in the meantime is not posted. Calls to one
  /// callee reach it in the order in which they were posted one after another.
  ///
  /// - Parameters:
  ///   - expiry: when the callee need no longer handle it.
  ///   - deadline: as in `MailboxSender.post`.
  ///   - isThere: checked again once the end of the callee would end the call as well.
  /// - Returns: `gone` if the callee has ended, or `full`; in both cases the call is still under
  ///   way, to be posted to another callee or ended.
  /// - Throws: `AppGroupError`: `tooLarge`, `unsupportedValue`, or errors of the file system.
  /// - Complexity: as `MailboxSender.post`.
  package func post(
    _ id: UInt64, _ value: PropertyListValue, expires expiry: Expiry, to callee: MailboxSender,
    until deadline: ContinuousClock.Instant? = nil, isThere: () -> Bool = { true }
  ) throws -> MailboxSender.Outcome {
    guard let replyTo = calls.withLock({ $0.beginPosting(id, to: callee) }) else { return .posted }
    let key = CallKey(id: id, replyTo: replyTo)
    var outcome = MailboxSender.Outcome.gone
    defer {
      let hasEnded = calls.withLock { $0.endPosting(id, isPosted: outcome == .posted) }
      if hasEnded, outcome == .posted { callee.postLater(.cancel(key)) }
    }
    if isThere() { outcome = try callee.post(.request(key, value, expiry), until: deadline) }
    return outcome
  }

  /// Blocks the calling thread until a latch is raised, probably by the end of a call, or a
  /// deadline has passed.
  package func block(for latch: WakeLatch, until deadline: ContinuousClock.Instant) {
    guard let mailbox = mailbox.withLock({ $0 }) else { return latch.block(until: deadline) }
    mailbox.lead(for: latch, until: deadline)
  }

  package func isUnderWay(_ id: UInt64) -> Bool { calls.withLock { $0.calls[id] != nil } }

  /// For tests: the number of calls that have not ended.
  package var count: Int { calls.withLock(\.calls.count) }

  /// Ends a call and notifies its callee. A call that has ended does not change.
  ///
  /// - Returns: whether this call ended it.
  @discardableResult
  package func end(_ id: UInt64, as end: CallEnd) -> Bool {
    guard let call = calls.withLock({ $0.take(id) }) else { return false }
    Self.end(id, call, end: end)
    return true
  }

  /// Ends the calls that were begun about a subject, and notifies their callees.
  package func endCalls(about subject: String, as end: CallEnd) {
    let calls = calls.withLock { calls in
      calls.take { $0.subject.utf8.elementsEqual(subject.utf8) }
    }
    for (id, call) in calls { Self.end(id, call, end: end) }
  }

  /// Ends a posted call, whether or not it was answered, and notifies its callee before this
  /// returns; see `IncomingCall.answer`. Blocks.
  package func release(_ id: UInt64, at callee: MailboxSender) throws {
    guard let address else { return }
    calls.withLock { $0.take(id) }?.end(.cancelled)
    _ = try callee.post(.cancel(CallKey(id: id, replyTo: address)))
  }

  package func notify(
    _ value: PropertyListValue, to outlet: MailboxSender
  ) throws -> MailboxSender.Outcome {
    try outlet.post(.notice(value))
  }

  /// Ends the calls to a callee, for example because it was replaced; answers that have already
  /// arrived are delivered first. Blocks.
  package func endCalls(to callee: MailboxSender, as end: CallEnd) {
    for (id, call) in takeCalls(where: { $0 === callee }) { Self.end(id, call, end: end) }
  }

  private func takeCalls(where isConcerned: (MailboxSender) -> Bool) -> [(UInt64, CallTable.Call)] {
    func matches(_ call: CallTable.Call) -> Bool { call.callee.map(isConcerned) ?? false }
    // The news of its end comes from a different watch, which may be faster.
    if calls.withLock({ $0.calls.values.contains(where: matches) }) {
      mailbox.withLock { $0 }?.catchUp()
    }
    return calls.withLock { $0.take(where: matches) }
  }

  private static func end(_ id: UInt64, _ call: CallTable.Call, end: CallEnd) {
    call.end(end)
    // If the post is still under way, the callee is notified after it.
    guard call.phase == .posted else { return }
    call.callee?.postLater(.cancel(CallKey(id: id, replyTo: call.replyTo)))
  }

  // MARK: Being asked

  private func receive(_ message: PropertyListValue) {
    switch CallMessage(message) {
    case .answer(let id, let answer): calls.withLock { $0.takeAnswered(id) }?.end(.answered(answer))
    case .cancel(let key):
      // Outside the lock together with the call: this may be its last reference.
      let call = state.withLock { $0.open[key]?.call }
      call?.end()
    case .request(let key, let value, let expiry):
      if !expiry.hasPassed { receive(key, value, expiry: expiry) }
    case .notice(let value): noticeHandler(value)
    case nil: return
    }
  }

  private func receive(_ key: CallKey, _ value: PropertyListValue, expiry: Expiry) {
    do {
      guard let caller = try watchedOutlet(to: key.replyTo) else { return }
      let mailbox = mailbox.withLock { $0 }
      let call = IncomingCall(key, value, expiry: expiry, from: caller, in: mailbox) {
        [weak self] key in
        self?.state.withLock { $0.bytes -= $0.open.removeValue(forKey: key)?.bytes ?? 0 }
      }
      let bytes = value.contentBytes
      let (refusal, isKnown) = state.withLock { state in
        let refusal =
          state.open.count >= Self.maximumOpen
          ? "\(Self.maximumOpen) requests"
          : state.bytes + bytes > acceptedBytes
            ? "requests of \(acceptedBytes >> 20) MiB" : nil
        if refusal == nil {
          state.bytes += bytes - (state.open[key]?.bytes ?? 0)
          state.open[key] = Open(call: call, bytes: bytes)
        }
        return (refusal, state.outlets[key.replyTo] === caller)
      }
      if let refusal {
        return call.refuse(code: "queueFull", "\(refusal) are not answered yet")
      }
      handler(call)
      // Its end may have been reported before the call was entered.
      if try !isKnown && watchedOutlet(to: key.replyTo) == nil { call.end() }
    } catch {
      // No descriptor left: the caller's call times out.
      return
    }
  }

  private func ended(_ address: String) {
    let (outlet, incoming) = state.withLock { state in
      let incoming = state.open.filter { $0.key.replyTo == address }.compactMap(\.value.call)
      return (state.outlets.removeValue(forKey: address), incoming)
    }
    for call in incoming { call.end() }
    let calls = takeCalls { $0.isWatched && $0.address == address }
    for (_, call) in calls { call.end(.died) }
    _ = outlet
  }
}

extension PropertyListValue {
  /// The approximate memory that it takes.
  fileprivate var contentBytes: Int {
    switch self {
    case .string(let text): PropertyListLimits.bytesPerNode + text.utf8.count
    case .data(let data): PropertyListLimits.bytesPerNode + data.count
    case .array(let items): items.reduce(PropertyListLimits.bytesPerNode) { $0 + $1.contentBytes }
    case .dictionary(let items):
      items.reduce(PropertyListLimits.bytesPerNode) {
        $0 + PropertyListLimits.bytesPerNode + $1.key.utf8.count + $1.value.contentBytes
      }
    default: PropertyListLimits.bytesPerNode
    }
  }
}
