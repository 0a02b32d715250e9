import Foundation
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists

// Incoming messages; everything here is on the session's queue.
extension WCSession {
  func receive(_ request: PeerRequest) {
    guard let link else { return state.withLock { $0.earlyRequests.append(request) } }
    do {
      guard link.isExpected(from: request.sender) else {
        try request.refuse("the phone's active watch is \(link.counterpart ?? "none")")
        return
      }
      switch request.value {
      case .dictionary: try receive(request, Payload.objects(request.value) ?? [:])
      case .data(let data): try receive(request, data)
      default: try request.refuse("a session takes dictionaries and data only")
      }
    } catch {
      Diagnostics.report(error)
    }
  }

  func receiveEarlyRequests() {
    let early = state.withLock { state in
      defer { state.earlyRequests = [] }
      return state.earlyRequests
    }
    for request in early { receive(request) }
  }

  private func receive(_ request: PeerRequest, _ message: [String: Any]) throws {
    guard request.expectsReply else {
      return try end(
        request, offer { $0.session(self, didReceiveMessage: message) },
        method: "session(_:didReceiveMessage:)")
    }
    let offer = offer {
      $0.session(self, didReceiveMessage: message) { reply in
        request.answer { try Payload.value(reply, maximumBytes: Payload.maximumMessageBytes) }
      }
    }
    try end(request, offer, method: "session(_:didReceiveMessage:replyHandler:)")
  }

  private func receive(_ request: PeerRequest, _ data: Data) throws {
    guard request.expectsReply else {
      return try end(
        request, offer { $0.session(self, didReceiveMessageData: data) },
        method: "session(_:didReceiveMessageData:)")
    }
    let offer = offer {
      $0.session(self, didReceiveMessageData: data) { reply in
        request.answer { try Payload.value(reply) }
      }
    }
    try end(request, offer, method: "session(_:didReceiveMessageData:replyHandler:)")
  }

  private func end(_ request: PeerRequest, _ offer: Offer, method: String) throws {
    switch offer {
    case .handled:
      // This reports to the sender that the message was delivered.
      if !request.expectsReply { try request.reply(.dictionary([:])) }
    case .declined: try request.refuse("the delegate does not implement \(method)")
    case .noDelegate: try request.refuse("the session has no delegate")
    }
  }
}

extension PeerRequest {
  /// Replies, on any thread; for a value that is not a valid reply the sender gets an error.
  fileprivate func answer(_ payload: () throws -> PropertyListValue) {
    do {
      do {
        try reply(payload())
      } catch let error as WCError {
        try fail("\(error)")
      }
    } catch {
      // The sender is gone, or the disk is full: the peers' session gives it its error.
      Diagnostics.report(error)
    }
  }
}
