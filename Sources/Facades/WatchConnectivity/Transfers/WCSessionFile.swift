public import Foundation

/// A file that is sent, or that arrived.
///
/// ```swift
/// // Called by `session(_:didReceive:)`, because the file is removed when that returns.
/// func keep(_ file: WCSessionFile, in directory: URL) throws {
///   let place = directory.appending(path: file.fileURL.lastPathComponent)
///   try FileManager.default.moveItem(at: file.fileURL, to: place)
/// }
/// ```
public final class WCSessionFile: NSObject, Sendable {
  /// Its path; a received file stays there until the delegate's method returns, and the last
  /// component is its name at the sender.
  public let fileURL: URL
  private let content: CarriedObjects

  package init(_ url: URL, _ metadata: CarriedObjects) {
    fileURL = url
    content = metadata
  }

  /// The metadata that was sent with it.
  public var metadata: [String: Any]? { content.objects }
}
