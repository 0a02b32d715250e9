public import Foundation
import WormholePropertyLists

/// A file that is sent, or that arrived.
///
/// ```swift
/// final class Link: NSObject, WCSessionDelegate {
///   func session(
///     _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
///     error: (any Error)?
///   ) {}
///   func session(_ session: WCSession, didReceive file: WCSessionFile) {
///     let place = FileManager.default.temporaryDirectory.appending(path: file.fileURL.lastPathComponent)
///     do {
///       try FileManager.default.moveItem(at: file.fileURL, to: place)   // it is removed on return
///     } catch {
///       print(error)
///     }
///   }
/// }
/// ```
public final class WCSessionFile: NSObject, Sendable {
  /// Its path; a received file stays there until the delegate's method returns, and the last
  /// component is its name at the sender.
  public let fileURL: URL
  private let content: PropertyListValue?
  private let given: GivenObjects?

  init(_ url: URL, _ metadata: PropertyListValue?) {
    fileURL = url
    content = metadata
    given = nil
  }

  init(_ url: URL, made metadata: MadeObjects?) {
    fileURL = url
    content = metadata?.value
    given = metadata?.given
  }

  init(_ url: URL, refused metadata: [String: Any]?) {
    fileURL = url
    content = nil
    given = GivenObjects(objects: metadata)
  }

  /// The metadata that was sent with it.
  public var metadata: [String: Any]? { Payload.objects(content) ?? given?.objects }
}
