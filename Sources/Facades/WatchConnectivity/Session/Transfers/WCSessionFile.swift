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
///
/// Its `Sendable` is unchecked because it is open, like the original: its own properties are
/// constant, and a subclass is responsible for those that it adds.
open class WCSessionFile: NSObject, @unchecked Sendable {
  private let url: URL
  private let content: CarriedObjects

  package init(_ url: URL, _ metadata: CarriedObjects) {
    self.url = url
    content = metadata
  }

  /// A file for a test, which overrides its properties.
  public override init() {
    url = URL(fileURLWithPath: "/dev/null")
    content = .given(nil)
  }

  /// Its path. A received file stays there until the delegate's method returns; the last component
  /// is its name at the sender.
  open var fileURL: URL { url }

  /// The metadata that was sent with it.
  open var metadata: [String: Any]? { content.objects }
}
