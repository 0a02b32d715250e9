public import Foundation

/// Data of any size that the counterpart gets for certain, as a file on the way.
///
/// Needs at least `.backgroundOnly`. Any number may be under way at once: each has a file of its own.
public struct Blob: Sendable {
  /// Hears how the transfer has ended.
  public typealias Completion = @Sendable (Result<Void, any Error>) -> Void

  /// Says what the blob is; any string, known to both sides.
  public let identifier: String
  /// The data.
  public let content: Data
  let payload: Payload?

  /// What was sent with it; empty if it was made of what no property list can hold.
  public var metadata: Content? { payload?.content }

  /// Makes a blob.
  ///
  /// - Parameters:
  ///   - identifier: says what it is.
  ///   - content: the data, all of it in memory.
  ///   - metadata: what a property list can hold; transferring anything else fails with
  ///     `WCError.payloadUnsupportedTypes`.
  public init(identifier: String, content: Data, metadata: Content? = nil) {
    self.identifier = identifier
    self.content = content
    payload = metadata.map(Payload.init)
  }
}

// The file is exactly the content, so nothing need be parsed, and the label travels as the file's
// metadata: "identifier", and "content" for the blob's own.
extension Blob {
  var wireMetadata: Payload {
    (payload ?? Payload([:])).labelled(identifier)
  }

  /// Nil for a file that no communicator sent.
  init?(content: Data, wireMetadata: Content?) {
    guard let parts = wireMetadata.flatMap(Labelled.init) else { return nil }
    self.init(
      identifier: parts.identifier, content: content,
      metadata: parts.content.isEmpty ? nil : parts.content)
  }
}

extension Blob: Observable {
  /// Who observes blobs that come; up to 16 wait for the first who does.
  public static let observations = Observations<Self>(keeping: 16)
}

extension Blob: CustomStringConvertible {
  public var description: String {
    "Blob(\(identifier), \(content.count) bytes" + (metadata.map { ", \($0)" } ?? "") + ")"
  }
}
