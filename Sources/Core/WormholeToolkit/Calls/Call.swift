import Dispatch
import Synchronization
import Wormhole
package import WormholePropertyLists
import WormholeSystem

/// The messages that the two ends of calls post into each other's mailboxes. A message is one
/// dictionary from its maker to its reader, with `kind`, the call's `id`, and
///
/// ```
/// request   replyTo (the caller's mailbox), value, expires, uptime, namespace (see `Expiry`);
///           between machines, whose clocks differ, left: the milliseconds that were left when it was posted
/// reply     value
/// failure   code, reason, and details if there are any
/// cancel    replyTo
/// ```
///
/// A notice has no `id`, only its `value`, because it is not answered. A call is identified by its
/// id and by the mailbox that its answer goes to.
enum CallMessage {
  static func request(
    _ key: CallKey, _ value: PropertyListValue, _ expiry: Expiry
  ) -> PropertyListValue {
    // A literal would have no room for the expiry.
    var fields = [String: PropertyListValue](minimumCapacity: 8)
    fields["kind"] = "request"
    fields["id"] = PropertyListValue(key.id)
    fields["replyTo"] = .string(key.replyTo)
    fields["value"] = value
    var message = PropertyListValue.dictionary(consume fields)
    expiry.write(into: &message)
    return message
  }

  static func answer(_ id: UInt64, _ answer: CallAnswer) -> PropertyListValue {
    switch answer {
    case .reply(let value): return ["kind": "reply", "id": PropertyListValue(id), "value": value]
    case .failure(let code, let reason, let details):
      var message: PropertyListValue = [
        "kind": "failure", "id": PropertyListValue(id), "code": .string(code),
        "reason": .string(reason),
      ]
      if let details { message["details"] = details }
      return message
    }
  }

  static func cancel(_ key: CallKey) -> PropertyListValue {
    ["kind": "cancel", "id": PropertyListValue(key.id), "replyTo": .string(key.replyTo)]
  }

  static func notice(_ value: PropertyListValue) -> PropertyListValue {
    ["kind": "notice", "value": value]
  }
}

/// The identity of a call among all calls of all processes.
package struct CallKey: Hashable, Sendable {
  package let id: UInt64
  /// The address of its caller.
  package let replyTo: String
}

extension CallKey {
  /// The call that a message is about; nil for anything else.
  init?(_ message: PropertyListValue) {
    guard let id = message["id"]?.uint64Value, let replyTo = message["replyTo"]?.stringValue
    else { return nil }
    self.init(id: id, replyTo: replyTo)
  }
}

package enum CallAnswer: Sendable {
  case reply(PropertyListValue)
  /// - Parameters:
  ///   - code: a word that both ends know. `notAnswered` and `queueFull` belong to `CallEndpoint`.
  ///   - details: the part of the reason that a program can use.
  case failure(code: String, reason: String, details: PropertyListValue? = nil)
}

package enum CallEnd: Sendable {
  case answered(CallAnswer)
  case timedOut
  case cancelled
  /// The caller's own endpoint was closed.
  case closed
  /// The callee has ended or has closed its endpoint; it may or may not have handled the call.
  case died
  /// The reason given by the caller's code: it could not be posted, for example.
  case failed(any Error)
}

/// A call from another process, to be answered. Thread-safe.
///
/// The first answer counts. If a call is released without an answer before its expiry, it ends as
/// `notAnswered` for its caller.
package final class IncomingCall: Sendable {
  private struct State {
    var isAnswered = false
    /// Whether the end of the call no longer matters, after the last answer.
    var isDone = false
    var isOver = false
    var onEnd: [@Sendable () -> Void] = []
  }

  package let key: CallKey
  /// The question.
  package let value: PropertyListValue
  private let expiry: Expiry
  private let caller: any MailboxWriter
  /// The beginning of the reason if an answer was given but could not be delivered.
  package static let undelivered = "its answer could not be delivered"

  private let state = Mutex(State())
  private weak let endpoint: CallEndpoint?

  init(
    _ key: CallKey, _ value: PropertyListValue, expiry: Expiry, from caller: any MailboxWriter,
    to endpoint: CallEndpoint?
  ) {
    self.key = key
    self.value = value
    self.expiry = expiry
    self.caller = caller
    self.endpoint = endpoint
  }

  deinit {
    endpoint?.forget(key)
    // A caller whose time has passed has timed out, even if it finds that out later than this.
    guard state.withLock({ !$0.isAnswered }), !isOver else { return }
    let reason = "its handler let the request go without an answer"
    postLater(.failure(code: "notAnswered", reason: reason))
  }

  /// Whether the caller no longer waits: it has cancelled, timed out or ended.
  package var isOver: Bool { state.withLock(\.isOver) || expiry.hasPassed }

  /// Reads everything that was posted to this process so far, because a process that was stopped may
  /// not know yet that the call is over. Blocks; not for the thread that delivers.
  package func catchUp() { endpoint?.catchUp() }

  /// Calls a handler once, when the caller no longer needs the call; immediately if that is already
  /// the case. The handler is not called after the last answer. It may be called on any thread, so
  /// it should be short.
  package func onEnd(_ handler: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      guard !state.isOver else { return true }
      if !state.isDone { state.onEnd.append(handler) }
      return false
    }
    if isOver { return handler() }
    guard let remaining = expiry.remainingUnlessNever else { return }
    // A stopped caller does not report its timeout.
    Timers.after(remaining) { [weak self] in
      // Handlers may take long, and timers must not wait. An answered call has no time limit.
      guard let self, !state.withLock(\.isAnswered) else { return }
      Blocking.queue().async { self.end() }
    }
  }

  /// Answers the call.
  ///
  /// - Parameter isLast: false if the end of the call still matters after this answer: its caller
  ///   releases the call (see `CallEndpoint.release`), or ends.
  /// - Returns: false if it was answered before, or if the caller no longer waits.
  /// - Throws: `WormholeError` if the answer cannot be delivered; the caller then gets a failure,
  ///   if it can be reached.
  /// - Complexity: as `MailboxWriter.post`.
  package func answer(_ answer: CallAnswer, isLast: Bool = true) throws -> Bool {
    let isFirst = state.withLock { state in
      guard !state.isAnswered, !state.isOver else { return false }
      state.isAnswered = true
      state.isDone = isLast
      if isLast { state.onEnd = [] }
      return true
    }
    guard isFirst else { return false }
    do {
      switch try caller.post(CallMessage.answer(key.id, answer)) {
      case .posted: return true
      case .gone: return false
      case .full:
        throw WormholeError(
          .queueFull, "answer", path: caller.path,
          reason: "too much waits for the process that asks",
          remedy: "it may be stopped")
      }
    } catch {
      let cause = (error as? WormholeError)?.reason ?? "\(error)"
      postLater(.failure(code: "failed", reason: "\(Self.undelivered): \(cause)"))
      throw error
    }
  }

  private func postLater(_ answer: CallAnswer) {
    caller.postLater(CallMessage.answer(key.id, answer))
  }

  /// Answers with a failure without blocking and without reporting the result.
  package func refuse(code: String, _ reason: String) {
    // After an error the caller was notified, if that was possible.
    Blocking.queue().async { [self] in _ = try? answer(.failure(code: code, reason: reason)) }
  }

  /// Ends the call, because the caller no longer needs it.
  package func end() {
    let handlers = state.withLock { state -> [@Sendable () -> Void] in
      guard !state.isOver, !state.isDone else { return [] }
      state.isOver = true
      return exchange(&state.onEnd, with: [])
    }
    for handler in handlers { handler() }
  }
}
