internal import Foundation
internal import WatchConnectivity
internal import WormholePropertyLists

/// The content of messages: keys with values that a property list can hold (strings, numbers,
/// booleans, dates, data, arrays and dictionaries).
///
/// A received number casts to every number type that can hold it, as with the original: an integer
/// to `Int`, `UInt8` or `Double`. A boolean is only a `Bool`.
///
/// ```swift
/// let content: Content = ["film": "Metropolis", "seats": [7, 8]]
/// Communicator.shared.send(ImmediateMessage(identifier: "sold", content: content))
/// ```
public typealias Content = [String: Any]

/// Content in a form that threads can share.
struct SharedContent: Sendable {
  private let value: Result<PropertyListValue, PropertyListError>

  /// Does not keep content that no property list can hold. Message initializers cannot throw, so
  /// the error is reported when the message is sent.
  init(_ content: Content) {
    value = Result { () throws(PropertyListError) in try PropertyListValue(propertyList: content) }
  }

  private init(_ value: Result<PropertyListValue, PropertyListError>) { self.value = value }

  /// Returns `[identifier: …, content: …]`, the form in which messages with an identifier travel.
  func labelled(_ identifier: String) -> SharedContent {
    SharedContent(value.map { .dictionary(["identifier": .string(identifier), "content": $0]) })
  }

  /// Returns a dictionary with the content as its only entry.
  func wrapped(under key: String) -> SharedContent {
    SharedContent(value.map { .dictionary([key: $0]) })
  }

  /// The content; empty for content that was not kept.
  var content: Content {
    switch value {
    case .success(let value): value.propertyListObject as? Content ?? [:]
    case .failure: [:]
    }
  }

  /// Returns the content.
  ///
  /// - Throws: `WCError.payloadUnsupportedTypes` with the key in its reason.
  func checked() throws -> Content {
    if case .failure(let error) = value {
      throw WCError(
        .payloadUnsupportedTypes,
        userInfo: [NSLocalizedFailureReasonErrorKey: "\(error).", NSUnderlyingErrorKey: error])
    }
    return content
  }
}

/// The parts of a message with an identifier, as it travels.
struct Labelled {
  let identifier: String
  let content: Content

  /// Returns nil for content that no communicator sends.
  init?(wire: Content) {
    guard let identifier = wire["identifier"] as? String,
      let content = wire["content"] as? Content
    else { return nil }
    self.identifier = identifier
    self.content = content
  }
}
