import NSFileCoordination

/// A presenter with the signatures that Xcode completes, which lets no other program read its item.
public final class LockedNote: NSObject, NSFilePresenter {
  public static let domain = "com.example.notes"
  public let presentedItemURL: URL?
  public let presentedItemOperationQueue = OperationQueue()

  public init(_ url: URL) {
    presentedItemURL = url
    super.init()
  }

  public static func present(_ url: URL) {
    NSFileCoordinator.addFilePresenter(LockedNote(url))
  }

  public func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) {
    reader {}
  }

  public func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) {
    writer(nil)
  }

  public func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    completionHandler(
      NSError(
        domain: Self.domain, code: 42,
        userInfo: [
          NSLocalizedDescriptionKey: "The note is locked.", "lines": [1, 2], "by": "Ann",
          NSUnderlyingErrorKey: CocoaError(.userCancelled),
        ]))
  }
}
