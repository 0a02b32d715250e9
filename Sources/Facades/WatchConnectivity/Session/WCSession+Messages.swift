public import Foundation
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeToolkit

/// The type that sends messages: only `WCSession` conforms.
///
/// Its methods take handlers with their isolation, which is part of a handler's type. `WCSession`
/// also has overloads without isolation, which the methods here call: for subclasses, to override
/// them, and for apps that wrap the session in their own protocol, whose handlers declare none.
///
/// ```swift
/// // The members of this protocol are the forms of `sendMessage` for handlers of any kind.
/// WCSession.default.sendMessage(["seats": [7, 8]]) { reply in print(reply["sold"] ?? 0) }
/// ```
public protocol WCSessionMessaging: AnyObject {}

extension WCSession: WCSessionMessaging {}

extension WCSessionMessaging where Self == WCSession {
  /// Sends a dictionary to the counterpart at once; messages arrive in the order of sending.
  ///
  /// Returns at once. With a reply handler, the counterpart's delegate is asked for a reply, and
  /// exactly one of the two handlers is called, on the delegate's queue. Without one, only the
  /// error handler is called, and only if it fails. A handler written in a `@MainActor` type, or in
  /// an actor, runs there instead; the main actor's handlers in the order in which messages end.
  ///
  /// On the watch it starts the phone's app if that is registered to be started for requests; on
  /// the phone it never starts anything.
  ///
  /// - Parameters:
  ///   - message: a property list of at most 65,536 bytes as a binary one.
  ///   - replyHandler: gets the reply; nil if none is expected.
  ///   - errorHandler: gets a `WCError`: `notReachable`, `messageReplyTimedOut` when the configured
  ///     time passed or the counterpart released its reply handler, `messageReplyFailed`,
  ///     `deliveryFailed` when the counterpart has no method for it, `sessionNotActivated`,
  ///     `sessionInactive` (also for a message under way when another watch becomes active),
  ///     `deviceNotPaired`, `watchAppNotInstalled`, `payloadUnsupportedTypes`, `payloadTooLarge`.
  public func sendMessage(
    _ message: [String: Any], replyHandler: (@isolated(any) ([String: Any]) -> Void)?,
    errorHandler: (@isolated(any) (any Error) -> Void)? = nil
  ) {
    let handlers = (replyHandler.map(calledWhereItBelongs), errorHandler.map(calledWhereItBelongs))
    (self as any OverridableMessaging).sendMessage(
      message, replyHandler: handlers.0, errorHandler: handlers.1)
  }

  /// Sends a dictionary as `sendMessage(_:replyHandler:errorHandler:)` does, with its own time
  /// limit instead of the session's. Apple's framework does not offer this.
  ///
  /// - Parameters:
  ///   - message: the dictionary.
  ///   - lifetime: how long it may be delivered and replied to, at most the configured time. A
  ///     counterpart that was stopped meanwhile does not get it. Afterwards the error handler gets
  ///     `messageReplyTimedOut`, or `transferTimedOut` if no reply was expected.
  ///   - replyHandler: gets the reply; nil if none is expected.
  ///   - errorHandler: gets a `WCError`.
  public func sendMessage(
    _ message: [String: Any], expiresAfter lifetime: Duration,
    replyHandler: (@isolated(any) ([String: Any]) -> Void)?,
    errorHandler: (@isolated(any) (any Error) -> Void)? = nil
  ) {
    self.send(.init(replyHandler, errorHandler, Payload.objects), within: lifetime) {
      try Payload.value(message, maximumBytes: Payload.maximumMessageBytes)
    }
  }

  /// Sends data to the counterpart at once; see `sendMessage`. At most 65,536 bytes.
  public func sendMessageData(
    _ data: Data, replyHandler: (@isolated(any) (Data) -> Void)?,
    errorHandler: (@isolated(any) (any Error) -> Void)? = nil
  ) {
    let handlers = (replyHandler.map(calledWhereItBelongs), errorHandler.map(calledWhereItBelongs))
    (self as any OverridableMessaging).sendMessageData(
      data, replyHandler: handlers.0, errorHandler: handlers.1)
  }
}

/// The forms of `WCSession` for handlers of no actor. This module can name them only through a
/// protocol: in any other call the forms for handlers of any kind come first.
private protocol OverridableMessaging {
  func sendMessage(
    _ message: [String: Any], replyHandler: (([String: Any]) -> Void)?,
    errorHandler: ((any Error) -> Void)?)
  func sendMessageData(
    _ data: Data, replyHandler: ((Data) -> Void)?, errorHandler: ((any Error) -> Void)?)
}

extension WCSession: OverridableMessaging {}

/// Wraps a handler in one of no actor, which calls it where it belongs.
private func calledWhereItBelongs<Value>(
  _ handler: @escaping @isolated(any) (Value) -> Void
) -> (Value) -> Void {
  let handler = IsolatedHandler(handler)
  return { handler($0) }
}

extension WCSession {
  /// - Parameter time: the time for the message and its reply, if shorter than the session's.
  func send(
    _ handlers: MessageHandlers, within time: Duration? = nil,
    _ payload: () throws -> PropertyListValue
  ) {
    do {
      let payload = try payload()
      let (route, reachability) = try routeToReachable()
      route.peer.request(
        payload, to: route.counterpart, reachability, expectsReply: handlers.expectsReply,
        until: .now + min(time ?? .seconds(Int64.max), route.link.setup.replyTimeout), on: queue
      ) { result in self.withDefault { handlers.end(result) } }
    } catch {
      queue.async { self.withDefault { handlers.end(.failure(error)) } }
    }
  }
}

/// The two handlers of a message; only one of them is called, once, on the session's queue.
struct MessageHandlers: Sendable {
  /// Returns whether a value has the form of a reply to such a message.
  let reply: (@Sendable (PropertyListValue) -> Bool)?
  let error: IsolatedHandler<any Error>?

  /// - Parameter read: gets the reply from a value; nil for a value of another kind.
  init<Reply>(
    _ reply: (@isolated(any) (Reply) -> Void)?, _ error: (@isolated(any) (any Error) -> Void)?,
    _ read: @escaping @Sendable (PropertyListValue) -> Reply?
  ) {
    self.reply = reply.map { handler in
      let handler = IsolatedHandler(handler)
      return { value in read(value).map { handler($0) } != nil }
    }
    self.error = error.map { IsolatedHandler($0) }
  }

  var expectsReply: Bool { reply != nil }

  func end(_ result: Result<PropertyListValue, some Error>) {
    switch result {
    case .success(let value):
      guard let reply, !reply(value) else { return }
      error?(
        WCError(
          .messageReplyFailed,
          reason: "The reply is a dictionary but the message was data, or vice versa."))
    case .failure(let failure):
      error?(WCError(failure, of: .message(expectsReply: expectsReply)))
    }
  }
}

// Incoming messages; everything here is on the session's queue.
extension WCSession {
  /// - Returns: false for a message that waits for a link to its sender: it counts as delivered
  ///   only when a delegate has it.
  func receive(_ request: PeerRequest) -> Bool {
    guard let link else { return false }
    return Diagnostics.reporting(otherwise: true) {
      guard link.isExpected(from: request.sender) else {
        // Its link is about to change to that watch.
        guard !link.isAboutToServe(request.sender) else { return false }
        try request.refuse("the phone's active watch is \(link.counterpart ?? "none")")
        return true
      }
      switch request.value {
      case .dictionary:
        let message = Payload.objects(request.value) ?? [:]
        try hand(
          request, "didReceiveMessage", { $0.session(self, didReceiveMessage: message) },
          replying: {
            $0.session(self, didReceiveMessage: message) { reply in
              request.answer {
                try Payload.value(reply, maximumBytes: Payload.maximumMessageBytes)
              }
            }
          })
      case .data(let data):
        try hand(
          request, "didReceiveMessageData", { $0.session(self, didReceiveMessageData: data) },
          replying: {
            $0.session(self, didReceiveMessageData: data) { reply in
              request.answer { try Payload.value(reply) }
            }
          })
      default: try request.refuse("a session takes dictionaries and data only")
      }
      return true
    }
  }

  /// - Parameter name: the argument label of the delegate's methods for it.
  private func hand(
    _ request: PeerRequest, _ name: String, _ notify: (any WCSessionDelegate) -> Void,
    replying: (any WCSessionDelegate) -> Void
  ) throws {
    switch offer(request.expectsReply ? replying : notify) {
    case .handled:
      // This tells the sender that the message was delivered.
      if !request.expectsReply { try request.reply(.dictionary([:])) }
    case .declined:
      let method = "session(_:\(name):\(request.expectsReply ? "replyHandler:" : ""))"
      try request.refuse("the delegate does not implement \(method)")
    case .noDelegate: try request.refuse("the session has no delegate")
    }
  }
}

extension PeerRequest {
  /// Replies, on any thread; for a value that is not a valid reply the sender gets an error.
  fileprivate func answer(_ payload: () throws -> PropertyListValue) {
    // If the sender is gone, or the disk is full, the peer session gives it the error.
    Diagnostics.reporting {
      do {
        try reply(payload())
      } catch let error as WCError {
        try fail("\(error)")
      }
    }
  }
}
