public import Foundation

/// Data of any size that the counterpart is guaranteed to get; it travels as a file.
///
/// Requires at least `.backgroundOnly`. Any number may be under way at once, because each has its
/// own file.
///
/// ```swift
/// Blob.observe { blob in print(blob.identifier, blob.content.count) }
/// Communicator.shared.transfer(Blob(identifier: "poster", content: try Data(contentsOf: file)))
/// ```
public struct Blob: Sendable {
  /// Receives the outcome of the transfer.
  public typealias Completion = @Sendable (Result<Void, any Error>) -> Void

  /// The kind of the blob: any string that both sides know.
  public let identifier: String
  /// The data.
  public let content: Data
  let payload: SharedContent?

  /// The metadata; empty if a property list cannot hold it: then the transfer fails with
  /// `WCError.payloadUnsupportedTypes`.
  public var metadata: Content? { payload?.content }

  /// Creates a blob of a kind, with its data in memory, and its metadata.
  public init(identifier: String, content: Data, metadata: Content? = nil) {
    self.identifier = identifier
    self.content = content
    payload = metadata.map(SharedContent.init)
  }
}

// The file is exactly the content, so nothing needs to be parsed. The label travels as the file's
// metadata: "identifier", and "content" for the metadata of the blob.
extension Blob {
  var wireMetadata: SharedContent {
    (payload ?? SharedContent([:])).labelled(identifier)
  }

  /// Returns nil for a file that no communicator sent.
  init?(content: Data, wireMetadata: Content?) {
    guard let parts = wireMetadata.flatMap(Labelled.init) else { return nil }
    self.init(
      identifier: parts.identifier, content: content,
      metadata: parts.content.isEmpty ? nil : parts.content)
  }
}

extension Blob: Observable {
  /// The observers of received blobs; up to 16 blobs wait for the first observer.
  public static let observations = Observations<Self>(keeping: 16)
}

extension Blob: CustomStringConvertible {
  public var description: String {
    "Blob(\(identifier), \(content.count) bytes" + (metadata.map { ", \($0)" } ?? "") + ")"
  }
}
