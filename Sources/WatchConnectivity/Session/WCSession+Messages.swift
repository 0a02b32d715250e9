import Dispatch
public import Foundation
import PeerConnectivity
import PropertyLists
import Synchronization

extension WCSession {
  /// Sends a dictionary to the counterpart at once; messages arrive in the order of sending.
  ///
  /// Returns at once. With a reply handler the delegate over there is asked for a reply, and exactly
  /// one of the two handlers is called, on the queue of the delegate; without one only the error
  /// handler, and only if it fails. On the watch it starts the phone's app, if that is registered to
  /// be started for requests; on the phone it never starts anything.
  ///
  /// - Parameters:
  ///   - message: what a property list can hold, of at most 65,536 bytes as a binary one.
  ///   - replyHandler: gets the reply; nil if none is expected.
  ///   - errorHandler: gets a `WCError`: `notReachable`, `messageReplyTimedOut` when the time that was
  ///     configured passed or the reply handler over there was let go, `messageReplyFailed`,
  ///     `deliveryFailed` when the delegate over there has no method for it, `sessionNotActivated`,
  ///     `sessionInactive` (also for what is under way when another watch becomes active),
  ///     `deviceNotPaired`, `watchAppNotInstalled`, `payloadUnsupportedTypes`, `payloadTooLarge`.
  public func sendMessage(
    _ message: [String: Any], replyHandler: (([String: Any]) -> Void)?,
    errorHandler: ((any Error) -> Void)? = nil
  ) {
    let handlers = MessageHandlers(
      reply: replyHandler.map { handler in
        { value in Payload.objects(value).map(handler) != nil }
      }, error: errorHandler)
    send(handlers) { try Payload.value(message, maximumBytes: Payload.maximumMessageBytes) }
  }

  /// Sends data to the counterpart at once; see `sendMessage`. At most 65,536 bytes.
  public func sendMessageData(
    _ data: Data, replyHandler: ((Data) -> Void)?, errorHandler: ((any Error) -> Void)? = nil
  ) {
    let handlers = MessageHandlers(
      reply: replyHandler.map { handler in
        { value in
          guard case .data(let reply) = value else { return false }
          handler(reply)
          return true
        }
      }, error: errorHandler)
    send(handlers) { try Payload.value(data) }
  }

  private func send(_ handlers: MessageHandlers, _ payload: () throws -> PropertyListValue) {
    do {
      let payload = try payload()
      let (link, counterpart) = try linkForSending()
      // A request to a watch would start it; one to the phone may.
      if try !link.isReachable() {
        throw WCError(.notReachable, reason: try link.whyNotReachable())
      }
      let number = state.withLock { $0.calls.begin(handlers) }
      let call = link.place.peer.request(
        payload, to: counterpart, expectsReply: handlers.expectsReply,
        timeout: link.place.replyTimeout
      ) { [self] result in
        guard let handlers = state.withLock({ $0.calls.end(number) }) else { return }
        queue.async { handlers.end(result) }
      }
      if !state.withLock({ $0.calls.keep(call, number) }) { call.cancel() }
    } catch {
      queue.async { handlers.end(.failure(error)) }
    }
  }

  /// Ends what is under way: the session is on its way to another watch.
  func endCalls() {
    for (handlers, call) in state.withLock({ $0.calls.endAll() }) {
      queue.async { handlers.end(.failure(WCError(.sessionInactive))) }
      call?.cancel()
    }
  }
}

/// The two handlers of a message, which are any closures.
// They are called on the session's serial queue and nowhere else, and only one of them, once: code
// written for Apple's framework relies on that. What they capture may be released on any thread, as
// with Apple's blocks.
struct MessageHandlers: @unchecked Sendable {
  /// Returns false for what is no reply to such a message.
  let reply: ((PropertyListValue) -> Bool)?
  let error: ((any Error) -> Void)?

  var expectsReply: Bool { reply != nil }

  func end(_ result: Result<PropertyListValue, some Error>) {
    switch result {
    case .success(let value):
      guard let reply, !reply(value) else { return }
      error?(WCError(.messageReplyFailed, reason: "The reply is of another kind than the message."))
    case .failure(let failure):
      error?(WCError(failure, of: .message(expectsReply: expectsReply)))
    }
  }
}

extension SessionLink {
  fileprivate func whyNotReachable() throws -> String? {
    guard let counterpart else { return nil }
    let pairing = try place.phonePairing.state()
    if place.role == .watch, pairing.activeName != place.peer.name {
      return "The phone's active watch is \(pairing.activeName ?? "none")."
    }
    let reason = try place.peer.reachability(of: counterpart).reason
    return reason.prefix(1).uppercased() + reason.dropFirst() + "."
  }
}
