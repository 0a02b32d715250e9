import Wormhole
package import WormholePropertyLists

/// A message that the two ends of calls post into each other's mailboxes: a dictionary with `kind`,
/// the call's `id`, and
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
enum CallMessage: Sendable {
  case request(CallKey, PropertyListValue, Expiry)
  case answer(id: UInt64, CallAnswer)
  case cancel(CallKey)
  case notice(PropertyListValue)

  /// Parses a message; nil for anything else, because other programs may have written anything.
  init?(_ message: PropertyListValue) {
    guard case .dictionary(let fields) = message else { return nil }
    if fields["kind"] == "notice", let value = fields["value"] {
      self = .notice(value)
      return
    }
    guard let id = fields["id"]?.uint64Value else { return nil }
    let key = fields["replyTo"]?.stringValue.map { CallKey(id: id, replyTo: $0) }
    switch fields["kind"]?.stringValue {
    case "request":
      guard let key, let value = fields["value"], let expiry = Expiry(message) else { return nil }
      self = .request(key, value, Self.arrived(expiry, left: fields["left"]?.int64Value))
    case "reply":
      guard let value = fields["value"] else { return nil }
      self = .answer(id: id, .reply(value))
    case "failure":
      self = .answer(
        id: id,
        .failure(
          code: fields["code"]?.stringValue ?? "", reason: fields["reason"]?.stringValue ?? "",
          details: fields["details"]))
    case "cancel":
      guard let key else { return nil }
      self = .cancel(key)
    default: return nil
    }
  }

  /// Returns the expiry of a request that has just come; from another machine it counts from now.
  private static func arrived(_ expiry: Expiry, left: Int64?) -> Expiry {
    guard let left, !expiry.isOfThisMachine, !expiry.isNever else { return expiry }
    return Expiry(after: .milliseconds(max(0, left)))
  }

  /// - Parameter spansMachines: Whether it may go to another machine.
  func propertyList(spansMachines: Bool) -> PropertyListValue {
    switch self {
    case .request(let key, let value, let expiry):
      // A literal would have no room for the expiry.
      var fields = [String: PropertyListValue](minimumCapacity: 8)
      fields["kind"] = "request"
      fields["id"] = PropertyListValue(key.id)
      fields["replyTo"] = .string(key.replyTo)
      fields["value"] = value
      var message = PropertyListValue.dictionary(consume fields)
      expiry.write(into: &message)
      if spansMachines, let left = expiry.remainingUnlessNever {
        message["left"] = .integer(Int64(left / .milliseconds(1)))
      }
      return message
    case .answer(let id, .reply(let value)):
      return ["kind": "reply", "id": PropertyListValue(id), "value": value]
    case .answer(let id, .failure(let code, let reason, let details)):
      var message: PropertyListValue = [
        "kind": "failure", "id": PropertyListValue(id), "code": .string(code),
        "reason": .string(reason),
      ]
      if let details { message["details"] = details }
      return message
    case .cancel(let key):
      return ["kind": "cancel", "id": PropertyListValue(key.id), "replyTo": .string(key.replyTo)]
    case .notice(let value): return ["kind": "notice", "value": value]
    }
  }
}

/// The identity of a call among all calls of all processes.
package struct CallKey: Hashable, Sendable {
  package let id: UInt64
  /// The address of its caller.
  package let replyTo: String
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
