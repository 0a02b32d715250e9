import Wormhole
package import WormholePropertyLists

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
