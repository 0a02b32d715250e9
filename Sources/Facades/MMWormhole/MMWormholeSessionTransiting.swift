public import Foundation
import Synchronization
import WatchConnectivity
import Wormhole
import WormholePropertyLists

// The messengers whose messages the session carries.

/// A messenger that keeps the latest message of each identifier in the application context of
/// `WCSession.default`: the counterpart gets the messages when it runs, even after a restart.
///
/// The key is the identifier, and the value is the message as a property list, so
/// `wormhole peer context` shows it. An equal message is not delivered again: its context is equal.
///
/// ```swift
/// let wormhole = MMWormhole(
///   applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: nil,
///   transitingType: .sessionContext)
/// wormhole.passMessageObject(["film": "Metropolis"] as NSCoding, identifier: "selection")
/// ```
open class MMWormholeSessionContextTransiting: MMWormholeFileTransiting {
  /// Held during each change of the context, which all instances share, so that two threads do not
  /// lose a message.
  private static let isChanging = Mutex(())
  /// Messages that are not yet in a context, because the session refused them.
  private let waiting = Mutex<[String: PropertyListValue]>([:])

  /// Adds a message to the context; nil does nothing. A message that the session refuses is
  /// reported, and sent with the next one, unless it would make the context too large.
  ///
  /// - Returns: False, because the session, not a notification, delivers it.
  open override func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String
  ) -> Bool {
    sending(messageObject) { content in try change(waiting: { $0[identifier] = content }) }
  }

  /// Returns the last message that the counterpart sent, or else the last that this side sent.
  open override func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? {
    guard let identifier else { return nil }
    let session = WCSession.default
    return reporting(otherwise: nil) {
      guard
        let object = session.receivedApplicationContext[identifier]
          ?? session.applicationContext[identifier]
      else { return nil }
      return try MessageContent.message(from: PropertyListValue(propertyList: object))
    }
  }

  /// Removes an identifier's message from this side's context.
  open override func deleteContent(forIdentifier identifier: String?) {
    guard let identifier else { return }
    reporting(otherwise: ()) {
      try change(waiting: { $0[identifier] = nil }, context: { $0[identifier] = nil })
    }
  }

  /// Removes all messages from this side's context.
  open override func deleteContentForAllMessages() {
    reporting(otherwise: ()) {
      try change(waiting: { $0 = [:] }, context: { $0 = [:] })
    }
  }

  private func change(
    waiting changeWaiting: (inout [String: PropertyListValue]) -> Void,
    context changeContext: (inout [String: Any]) -> Void = { _ in }
  ) throws {
    try Self.isChanging.withLock { _ in
      let session = WCSession.default
      let before = waiting.withLock { $0 }
      var messages = before
      changeWaiting(&messages)
      var refused = messages
      defer { waiting.withLock { $0 = refused } }
      do {
        var context = try session.applicationContextToChange()
        changeContext(&context)
        for (identifier, content) in messages { context[identifier] = content.propertyListObject }
        try session.updateApplicationContext(context)
        refused = [:]
      } catch let error as WCError where error.code == .payloadTooLarge {
        // With it no later message could be sent either.
        refused = before
        throw error
      }
    }
  }
}

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
  /// - Returns: False, because the session, not a notification, delivers it.
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
  /// Sends a message as its own file; nil does nothing. In the original two successive messages
  /// share one file.
  ///
  /// - Returns: False, because the session, not a notification, delivers it.
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
  static let message = TemporaryContent(kind: "message")
  /// The key of a message's identifier in the transfer's metadata.
  static let identifierKey = "identifier"
}
