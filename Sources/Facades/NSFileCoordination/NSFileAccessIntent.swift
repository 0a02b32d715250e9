public import Foundation
public import WormholeFiles

/// One item of an access to several; the accessor reads the item's URL here.
///
/// ```swift
/// let intent = NSFileAccessIntent.writingIntent(with: file)
/// NSFileCoordinator().coordinate(with: [intent], queue: OperationQueue()) { error in
///   if error == nil { print(intent.url.path) }     // where to write
/// }
/// ```
public final class NSFileAccessIntent: NSObject, Sendable {
  let intent: FileAccessIntent

  private init(_ intent: FileAccessIntent) {
    self.intent = intent
  }

  /// To read an item.
  public static func readingIntent(
    with url: URL, options: NSFileCoordinator.ReadingOptions = []
  ) -> NSFileAccessIntent {
    NSFileAccessIntent(FileAccessIntent.readingIntent(with: url, options: options))
  }

  /// To change an item.
  public static func writingIntent(
    with url: URL, options: NSFileCoordinator.WritingOptions = []
  ) -> NSFileAccessIntent {
    NSFileAccessIntent(FileAccessIntent.writingIntent(with: url, options: options))
  }

  /// While the accessor runs, the URL to use for the item; before that, the requested URL.
  public var url: URL { intent.url }
}
