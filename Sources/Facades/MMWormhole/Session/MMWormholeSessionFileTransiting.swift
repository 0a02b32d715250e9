public import Foundation
import WatchConnectivity
import WormholePropertyLists

/// A messenger that sends each message as a file through `WCSession.default`: it is certain to be
/// delivered, whenever the counterpart runs.
///
/// The counterpart keeps the latest message of each identifier if the `wormholeMessenger` of its
/// `MMWormholeSession` is such a messenger; this messenger reads the messages that were received in
/// its group and directory.
///
/// ```swift
/// let wormhole = MMWormhole(
///   applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: "wormhole",
///   transitingType: .sessionFile)
/// wormhole.passMessageObject(["poster": "large"] as NSCoding, identifier: "poster")
/// ```
open class MMWormholeSessionFileTransiting: MMWormholeFileTransiting {
  /// Sends a message as a file of its own; nil does nothing. In the original two successive
  /// messages share one file.
  ///
  /// - Returns: False, because the session delivers it, and no notification.
  open override func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String
  ) -> Bool {
    sending(messageObject) { content in
      let file = try TemporaryContent.message.write(content.binaryData())
      WCSession.default.transferFile(
        file, metadata: [TemporaryContent.identifierKey: identifier])
    }
  }
}

extension TemporaryContent {
  /// The files of messages on their way.
  static let message = TemporaryContent(kind: "message", name: "message")
  /// The key of a message's identifier in the transfer's metadata.
  static let identifierKey = "identifier"
}
