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
/// **A call** runs as follows: `begin` writes its message and enters it in the table of open calls;
/// `post` posts the message to a callee; it ends once, with a `CallEnd`. The callee's endpoint hands
/// an `IncomingCall` to its handler, at most once, and in the order in which one caller posted.
///
/// **What ends a call**, whichever comes first: the answer; its deadline; `cancel`; `close`; the
/// death of the callee, if it was posted as watched; or the client (`endCalls`). The callee is
/// notified of every end except the answer.
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

  /// How many bytes unanswered incoming calls may have: as many as may wait in a mailbox.
  package static let maximumBytes = 256 << 20

  private let container: SharedContainer
  private let handler: Handler
  private let noticeHandler: @Sendable (PropertyListValue) -> Void
  private let table: Mutex<CallTable>
  /// One timer for all calls: a timer per call would remain behind for as long as its timeout.
  private let alarm = WakeLatch()
  private let mailbox = Mutex<(any Mailbox)?>(nil)

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
    table = Mutex(CallTable(acceptedBytes: bytes))
    self.handler = handler
    noticeHandler = notice
    // On a thread that may wait, because the endpoint may end there.
    alarm.call { [weak self] in Blocking.queue().async { [weak self] in self?.endOverdue() } }
  }

  deinit { close() }

  /// Creates the mailbox if it is missing.
  ///
  /// - Returns: its address.
  /// - Throws: `WormholeError` for errors of the file system.
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
    for call in table.withLock({ $0.take { _ in true } }) { call.end(.closed) }
    let (incoming, others) = table.withLock { ($0.received(), exchange(&$0.others, with: [:])) }
    for call in incoming { call.end() }
    _ = others
  }

  /// Reads everything that was posted to this process so far. Blocks.
  func catchUp() { mailbox.withLock { $0 }?.catchUp() }

  // MARK: Asking

  /// Begins a call, which is posted later.
  ///
  /// - Parameters:
  ///   - subject: a word chosen by the client, for `endCalls(about:as:)`.
  ///   - deadline: when it times out, and its callee need no longer handle it; nil if never.
  ///   - end: called once, possibly on the monitor's thread, so it must be short.
  /// - Returns: the id of the call in this process.
  /// - Throws: see `open`.
  package func begin(
    _ value: PropertyListValue, about subject: String = "",
    until deadline: ContinuousClock.Instant?, _ end: @escaping @Sendable (CallEnd) -> Void
  ) throws -> UInt64 {
    let replyTo = try open(until: deadline)
    let expiry = deadline.map { Expiry(after: ContinuousClock.now.duration(to: $0)) } ?? .never
    let id = table.withLock { table in
      table.insert(replyTo: replyTo) { key in
        CallTable.Call(
          key: key, subject: subject, deadline: deadline, end: end,
          request: CallMessage.request(key, value, expiry))
      }
    }
    if let deadline { alarm.raise(at: deadline) }
    return id
  }

  private func endOverdue() {
    let now = ContinuousClock.now
    let (overdue, next) = table.withLock { table in
      (table.take { $0.deadline.map { $0 <= now } ?? false }, table.deadline)
    }
    if let next { alarm.raise(at: next) }
    end(overdue, as: .timedOut)
  }

  /// Posts a call that has begun; one that has ended in the meantime is not posted. Calls to one
  /// callee reach it in the order in which they were posted one after another.
  ///
  /// - Parameters:
  ///   - address: the callee's.
  ///   - isWatched: whether it ends as `died` when the callee does.
  ///   - isThere: checked again once the end of the callee would end the call as well.
  /// - Returns: `gone` if the callee has ended, or `full`; in both cases the call is still under
  ///   way, to be posted to another callee or ended.
  /// - Throws: `WormholeError`: `tooLarge`, `unsupportedValue`, or errors of the file system.
  /// - Complexity: as `MailboxWriter.post`; for a new callee that is watched, also two opens, a
  ///   watch and a flock.
  package func post(
    _ id: UInt64, to address: String, isWatched: Bool = false, isThere: () -> Bool = { true }
  ) throws -> PostOutcome {
    guard let callee = try other(at: address, isWatched: isWatched) else { return .gone }
    let begun = table.withLock {
      $0.beginPosting(id, to: callee, at: address, isWatched: isWatched)
    }
    guard let call = begun, var request = call.request else { return .posted }
    var outcome = PostOutcome.gone
    defer {
      let hasEnded = table.withLock { $0.endPosting(id, isPosted: outcome == .posted) }
      if hasEnded, outcome == .posted { callee.postLater(CallMessage.cancel(call.key)) }
    }
    guard isThere() else { return outcome }
    if let deadline = call.deadline, !container.isLocal {
      // Another machine has another clock.
      let left = max(.zero, ContinuousClock.now.duration(to: deadline))
      // As long as no number overflows.
      request["left"] = .integer(Int64(min(left / .milliseconds(1), 1e15)))
    }
    outcome = try callee.post(request, until: call.deadline)
    return outcome
  }

  /// Returns the process at an address.
  ///
  /// - Parameter isWatched: Whether calls to it are to end when it does, and calls from it are to be
  ///   over.
  /// - Returns: nil if it has ended, as far as it is watched, or if the text cannot be an address.
  private func other(at address: String, isWatched: Bool) throws -> (any MailboxWriter)? {
    if let known = table.withLock({ $0.others[address] }), !isWatched || known.end != nil {
      return known.writer
    }
    guard let new = container.mailboxWriter(to: address) else { return nil }
    var end: ObservationToken?
    if isWatched {
      end = try container.callingEngine.observeEnd(ofMailbox: address) { [weak self] in
        if !LeaseFault.ignoringEnds.isActive { self?.ended(address) }
      }
      guard end != nil else { return nil }
    }
    let (writer, dropped) = table.withLock { $0.enter(new, at: address, watchedBy: end) }
    _ = dropped
    return writer
  }

  /// Blocks the calling thread until a latch is raised, probably by the end of a call, or a
  /// deadline has passed.
  package func block(for latch: WakeLatch, until deadline: ContinuousClock.Instant) {
    guard let mailbox = mailbox.withLock({ $0 }) else { return latch.block(until: deadline) }
    mailbox.lead(for: latch, until: deadline)
  }

  /// The deadline of a call under way; nil if it has ended, or has none.
  package func deadline(of id: UInt64) -> ContinuousClock.Instant? {
    table.withLock { $0.calls[id]?.deadline }
  }

  /// For tests: the number of calls that have not ended.
  package var count: Int { table.withLock(\.calls.count) }

  /// Ends a call and notifies its callee. A call that has ended does not change.
  ///
  /// - Returns: whether this call ended it.
  @discardableResult
  package func end(_ id: UInt64, as end: CallEnd) -> Bool {
    let call = table.withLock { $0.take(id) }
    self.end([call].compactMap(\.self), as: end)
    return call != nil
  }

  /// Ends the calls that were begun about a subject, and notifies their callees.
  package func endCalls(about subject: String, as end: CallEnd) {
    self.end(
      table.withLock { $0.take { $0.subject.utf8.elementsEqual(subject.utf8) } }, as: end)
  }

  /// Ends the calls to a callee, for example because it was replaced; answers that have already
  /// arrived are delivered first. Blocks.
  package func endCalls(to address: String, as end: CallEnd) {
    self.end(takeCalls { $0.callee?.address == address }, as: end)
    // One that is watched is forgotten at its end, because its own calls may be open.
    let other = table.withLock {
      $0.others[address]?.end == nil ? $0.others.removeValue(forKey: address) : nil
    }
    _ = other
  }

  private func takeCalls(where matches: (CallTable.Call) -> Bool) -> [CallTable.Call] {
    // The news of its end comes from a different watch, which may be faster.
    if table.withLock({ $0.calls.values.contains(where: matches) }) { catchUp() }
    return table.withLock { $0.take(where: matches) }
  }

  private func end(_ calls: [CallTable.Call], as end: CallEnd) {
    for call in calls {
      call.end(end)
      // If the post is still under way, the callee is notified after it.
      if call.phase == .posted { call.callee?.writer.postLater(CallMessage.cancel(call.key)) }
    }
  }

  /// Ends a posted call, whether or not it was answered, and notifies its callee before this
  /// returns; see `IncomingCall.answer`. Blocks.
  package func release(_ id: UInt64, at callee: String) throws {
    guard let address else { return }
    table.withLock { $0.take(id) }?.end(.cancelled)
    try post(CallMessage.cancel(CallKey(id: id, replyTo: address)), to: callee)
  }

  /// Posts a notice. Blocks.
  package func notify(_ value: PropertyListValue, at address: String) throws {
    try post(CallMessage.notice(value), to: address)
  }

  /// Posts a message without a call, for which no process is remembered.
  private func post(_ message: PropertyListValue, to address: String) throws {
    let known = table.withLock { $0.others[address]?.writer }
    _ = try (known ?? container.mailboxWriter(to: address))?.post(message)
  }

  // MARK: Being asked

  private func receive(_ message: PropertyListValue) {
    let (key, value) = (CallKey(message), message["value"])
    switch (message["kind"]?.stringValue, value) {
    case ("request", let value?):
      guard let key, let expiry = Expiry(arrivingIn: message), !expiry.hasPassed else { return }
      receive(key, value, expiry: expiry)
    case ("reply", let value?): end(message, .reply(value))
    case ("failure", _):
      end(
        message,
        .failure(
          code: message["code"]?.stringValue ?? "", reason: message["reason"]?.stringValue ?? "",
          details: message["details"]))
    case ("cancel", _):
      guard let key else { return }
      // Outside the lock together with the call: this may be its last reference.
      let call = table.withLock { $0.received(key) }
      call?.end()
    case ("notice", let value?): noticeHandler(value)
    // Other programs may have written anything.
    default: return
    }
  }

  private func end(_ message: PropertyListValue, _ answer: CallAnswer) {
    guard let id = message["id"]?.uint64Value else { return }
    table.withLock { $0.takeAnswered(id) }?.end(.answered(answer))
  }

  private func receive(_ key: CallKey, _ value: PropertyListValue, expiry: Expiry) {
    do {
      guard let caller = try other(at: key.replyTo, isWatched: true) else { return }
      let call = IncomingCall(key, value, expiry: expiry, from: caller, to: self)
      let (refusal, isKnown) = table.withLock {
        ($0.enter(call), $0.others[key.replyTo]?.end != nil)
      }
      if let refusal {
        return call.refuse(code: "queueFull", "\(refusal) are not answered yet")
      }
      handler(call)
      // Its end may have been reported before the call was entered.
      if try !isKnown && other(at: key.replyTo, isWatched: true) == nil { call.end() }
    } catch {
      // No descriptor left: the caller's call times out.
      return
    }
  }

  func forget(_ key: CallKey) { table.withLock { $0.remove(key) } }

  private func ended(_ address: String) {
    let (other, incoming) = table.withLock { table in
      (table.others.removeValue(forKey: address), table.received(from: address))
    }
    for call in incoming { call.end() }
    for call in takeCalls(where: { $0.isWatched && $0.callee?.address == address }) {
      call.end(.died)
    }
    _ = other
  }
}

extension Expiry {
  /// The expiry of a request that has just come; from another machine it counts from now.
  ///
  /// - Returns: nil if the message has none.
  fileprivate init?(arrivingIn message: PropertyListValue) {
    guard let expiry = Expiry(message) else { return nil }
    self = expiry
    guard !isOfThisMachine, !isNever, let left = message["left"]?.int64Value else { return }
    self = Expiry(after: .milliseconds(max(0, left)))
  }
}
