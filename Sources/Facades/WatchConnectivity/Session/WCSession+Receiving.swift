import Foundation
import Wormhole
import WormholePeers
import WormholePropertyLists

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
