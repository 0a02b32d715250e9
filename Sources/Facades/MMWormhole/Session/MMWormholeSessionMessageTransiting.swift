public import Foundation
import WatchConnectivity
import Wormhole
import WormholePropertyLists

/// A messenger that sends each message at once through `WCSession.default`, and starts the phone's
/// app if it is registered for that. Messages are not kept.
///
/// The original silently drops a message while the counterpart is not reachable; here
/// `errorHandler` receives the reason.
///
/// ```swift
/// let wormhole = MMWormhole(
///   applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: nil,
///   transitingType: .sessionMessage)
/// wormhole.passMessageObject(["pressed": 3] as NSCoding, identifier: "button")
/// ```
open class MMWormholeSessionMessageTransiting: MMWormholeFileTransiting {
  /// Returns nil: there are no files.
  open override func messagePassingDirectoryPath() -> String? { nil }

  /// Sends a message; nil does nothing.
  ///
  /// - Returns: False, because the session delivers it, and no notification.
  open override func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String
  ) -> Bool {
    let reporter = reporter
    return sending(messageObject) { content in
      WCSession.default.sendMessage([identifier: content.propertyListObject], replyHandler: nil) {
        reporter.report($0)
      }
    }
  }

  /// Returns nil: messages are not kept.
  open override func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? { nil }

  /// Does nothing: messages are not kept.
  open override func deleteContent(forIdentifier identifier: String?) {}

  /// Does nothing: messages are not kept.
  open override func deleteContentForAllMessages() {}
}
