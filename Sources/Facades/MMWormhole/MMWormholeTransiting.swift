public import Foundation

/// A messenger that stores and fetches messages for an `MMWormhole`; replace it to store them
/// elsewhere. The original's protocol, as Swift imports it.
///
/// Its methods are called on the thread that passes or reads a message, and on the main thread for
/// listeners.
///
/// ```swift
/// final class Silent: NSObject, MMWormholeTransiting {
///   func writeMessageObject(_ messageObject: (any NSCoding)?, forIdentifier identifier: String) -> Bool {
///     false                                   // no listener is called
///   }
///   func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? { nil }
///   func deleteContent(forIdentifier identifier: String?) {}
///   func deleteContentForAllMessages() {}
/// }
/// let wormhole = MMWormhole(
///   applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: nil)
/// wormhole.wormholeMessenger = Silent()
/// ```
public protocol MMWormholeTransiting: NSObjectProtocol {
  /// Stores a message.
  ///
  /// - Parameters:
  ///   - messageObject: The message; nil has no content.
  ///   - identifier: The identifier of the message.
  /// - Returns: Whether listeners are to be called.
  func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String
  ) -> Bool

  /// Returns the stored message of an identifier; nil if there is none.
  func messageObject(forIdentifier identifier: String?) -> (any NSCoding)?

  /// Removes the message of an identifier.
  func deleteContent(forIdentifier identifier: String?)

  /// Removes all messages.
  func deleteContentForAllMessages()
}

/// Receives messages that do not arrive through a messenger.
///
/// ```swift
/// func notify(_ delegate: any MMWormholeTransitingDelegate) {
///   delegate.notifyListenerForMessage(withIdentifier: "button", message: ["pressed": 3] as NSCoding)
/// }
/// ```
public protocol MMWormholeTransitingDelegate: NSObjectProtocol {
  /// Calls the identifier's listener with a message.
  func notifyListenerForMessage(withIdentifier identifier: String?, message: (any NSCoding)?)
}

/// The kind of messenger with which an `MMWormhole` begins.
///
/// ```swift
/// let wormhole = MMWormhole(
///   applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: "wormhole",
///   transitingType: .sessionContext)
/// ```
public enum MMWormholeTransitingType: Int, Sendable {
  /// `MMWormholeFileTransiting`.
  case file = 0
  /// `MMWormholeCoordinatedFileTransiting`.
  case coordinatedFile = 1
  /// `MMWormholeSessionContextTransiting`.
  case sessionContext = 2
  /// `MMWormholeSessionMessageTransiting`.
  case sessionMessage = 3
  /// `MMWormholeSessionFileTransiting`.
  case sessionFile = 4
}
