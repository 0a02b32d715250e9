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

/// The same, as a presenter is written today.
public final class AsyncLockedNote: NSObject, NSFilePresenter, Sendable {
  public let presentedItemURL: URL?
  public let presentedItemOperationQueue = OperationQueue()
  private let asked: @Sendable (String) -> Void

  public init(_ url: URL, asked: @escaping @Sendable (String) -> Void) {
    presentedItemURL = url
    self.asked = asked
  }

  public func savePresentedItemChanges() async throws {
    await Task.yield()
    asked("save")
    throw CocoaError(.userCancelled)
  }

  public func accommodatePresentedItemDeletion() async throws {
    await Task.yield()
    asked("delete")
    throw CocoaError(.fileLocking)
  }

  public func accommodatePresentedSubitemDeletion(at url: URL) async throws {
    await Task.yield()
    asked("delete " + url.lastPathComponent)
  }
}

/// A presenter of the main actor, whose asynchronous method uses its state.
@MainActor
public final class CountingNote: NSObject, NSFilePresenter {
  public nonisolated let presentedItemURL: URL?
  public nonisolated let presentedItemOperationQueue = OperationQueue()
  private var saves = 0
  private let asked: @Sendable (String) -> Void

  public nonisolated init(_ url: URL, asked: @escaping @Sendable (String) -> Void) {
    presentedItemURL = url
    self.asked = asked
  }

  public func savePresentedItemChanges() async throws {
    saves += 1
    asked("save \(saves)")
  }
}
