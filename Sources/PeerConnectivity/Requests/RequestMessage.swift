import AppGroup
import PropertyLists

/// What sessions put into each other's mailboxes: a dictionary with `kind`, the call's `id`, and
///
/// ```
/// request   from, replyTo (a mailbox), expectsReply, value, expires, uptime, namespace (see `Expiry`)
/// reply     value
/// failure   code, reason
/// cancel    replyTo
/// ```
///
/// A call is known by its id and by the mailbox that its answer goes to.
enum RequestMessage: Sendable {
  case request(IncomingCall)
  case reply(id: UInt64, PropertyListValue)
  case failure(id: UInt64, PeerAnswer.Failure)
  case cancel(id: UInt64, replyTo: String)

  /// A request, as it is sent.
  struct IncomingCall: Sendable {
    let id: UInt64
    let sender: String
    let replyTo: String
    let expectsReply: Bool
    let value: PropertyListValue
    let expiry: Expiry
  }

  /// Reads what came; nil for what is no message: others may have written anything.
  init?(_ message: PropertyListValue) {
    guard case .dictionary(let fields) = message, let id = fields["id"]?.uint64Value else {
      return nil
    }
    switch fields["kind"]?.stringValue {
    case "request":
      guard let sender = fields["from"]?.stringValue, let replyTo = fields["replyTo"]?.stringValue,
        let expectsReply = fields["expectsReply"]?.boolValue, let value = fields["value"],
        let expiry = Expiry(message)
      else { return nil }
      self = .request(
        IncomingCall(
          id: id, sender: sender, replyTo: replyTo, expectsReply: expectsReply, value: value,
          expiry: expiry))
    case "reply":
      guard let value = fields["value"] else { return nil }
      self = .reply(id: id, value)
    case "failure":
      self = .failure(
        id: id,
        PeerAnswer.Failure(
          wire: fields["code"]?.stringValue, reason: fields["reason"]?.stringValue ?? ""))
    case "cancel":
      guard let replyTo = fields["replyTo"]?.stringValue else { return nil }
      self = .cancel(id: id, replyTo: replyTo)
    default: return nil
    }
  }

  var propertyList: PropertyListValue {
    switch self {
    case .request(let call):
      var message: PropertyListValue = [
        "kind": "request", "id": PropertyListValue(call.id), "from": .string(call.sender),
        "replyTo": .string(call.replyTo), "expectsReply": .boolean(call.expectsReply),
        "value": call.value,
      ]
      call.expiry.write(into: &message)
      return message
    case .reply(let id, let value):
      return ["kind": "reply", "id": PropertyListValue(id), "value": value]
    case .failure(let id, let failure):
      return [
        "kind": "failure", "id": PropertyListValue(id), "code": .string(failure.code.rawValue),
        "reason": .string(failure.reason),
      ]
    case .cancel(let id, let replyTo):
      return ["kind": "cancel", "id": PropertyListValue(id), "replyTo": .string(replyTo)]
    }
  }
}

/// How a peer answered.
enum PeerAnswer: Sendable {
  case reply(PropertyListValue)
  case failure(Failure)

  struct Failure: Sendable {
    let code: PeerError.Code
    let reason: String

    init(_ code: PeerError.Code, _ reason: String) {
      self.code = code
      self.reason = reason
    }

    /// What a peer may say of itself; anything else is just a failure.
    private static let codes: Set<PeerError.Code> = [
      .failed, .notHandled, .notAnswered, .unreachable, .queueFull, .unexpectedValue,
    ]

    init(wire code: String?, reason: String) {
      let code = code.flatMap { PeerError.Code(rawValue: $0) }
      self.init(code.flatMap { Self.codes.contains($0) ? $0 : nil } ?? .failed, reason)
    }
  }
}
