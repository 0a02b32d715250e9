import NSFileCoordination
import Testing
import WormholeTestSupport

/// The declarations of `Foundation/NSFileCoordinator.h` and `Foundation/NSFilePresenter.h` in the public
/// SDK of macOS, as Swift imports them: a block with `NS_SWIFT_SENDABLE` is `@Sendable`, one with
/// `NS_NOESCAPE` does not escape, an `NSError **` is an `NSErrorPointer`, and a method with a completion
/// handler has an asynchronous form, too, which runs on its caller's executor.
@Suite("The signatures of the original's header", .blocking)
struct SignatureTests {
  typealias Row = (declared: String, found: Any.Type)

  private static let error = "Optional<UnsafeMutablePointer<Optional<NSError>>>"

  private func check(_ rows: [Row]) {
    for row in rows {
      // Whether a reference to a method is `@Sendable` is not part of its declaration.
      let found = String(describing: row.found).replacing(/(^|-> )@Sendable \(/) { "\($0.1)(" }
      #expect(found == row.declared)
    }
  }

  @Test("of NSFileCoordinator and NSFileAccessIntent")
  func coordinator() {
    typealias It = NSFileCoordinator
    let error = Self.error
    check([
      ("(Optional<NSFilePresenter>) -> NSFileCoordinator", type(of: It.init(filePresenter:))),
      ("(NSFilePresenter) -> ()", type(of: It.addFilePresenter(_:))),
      ("(NSFilePresenter) -> ()", type(of: It.removeFilePresenter(_:))),
      ("Array<NSFilePresenter>", type(of: It.filePresenters)),
      (
        "ReferenceWritableKeyPath<NSFileCoordinator, String>", type(of: \It.purposeIdentifier)
      ),
      (
        "(NSFileCoordinator) -> (Array<NSFileAccessIntent>, OperationQueue, "
          + "@Sendable (Optional<Error>) -> ()) -> ()",
        type(of: It.coordinate(with:queue:byAccessor:))
      ),
      (
        "(NSFileCoordinator) -> (URL, ReadingOptions, \(error), (URL) -> ()) -> ()",
        type(of: It.coordinate(readingItemAt:options:error:byAccessor:))
      ),
      (
        "(NSFileCoordinator) -> (URL, WritingOptions, \(error), (URL) -> ()) -> ()",
        type(of: It.coordinate(writingItemAt:options:error:byAccessor:))
      ),
      (
        "(NSFileCoordinator) -> (URL, ReadingOptions, URL, WritingOptions, \(error), "
          + "(URL, URL) -> ()) -> ()",
        type(of: It.coordinate(readingItemAt:options:writingItemAt:options:error:byAccessor:))
      ),
      (
        "(NSFileCoordinator) -> (URL, WritingOptions, URL, WritingOptions, \(error), "
          + "(URL, URL) -> ()) -> ()",
        type(of: It.coordinate(writingItemAt:options:writingItemAt:options:error:byAccessor:))
      ),
      (
        "(NSFileCoordinator) -> (Array<URL>, ReadingOptions, Array<URL>, WritingOptions, "
          + "\(error), (@Sendable () -> ()) -> ()) -> ()",
        type(
          of: It.prepare(
            forReadingItemsAt:options:writingItemsAt:options:error:byAccessor:))
      ),
      ("(NSFileCoordinator) -> (URL, URL) -> ()", type(of: It.item(at:willMoveTo:))),
      ("(NSFileCoordinator) -> (URL, URL) -> ()", type(of: It.item(at:didMoveTo:))),
      (
        "(NSFileCoordinator) -> (URL, Set<URLResourceKey>) -> ()",
        type(of: It.item(at:didChangeUbiquityAttributes:))
      ),
      ("(NSFileCoordinator) -> () -> ()", type(of: It.cancel)),
      (
        "(URL, ReadingOptions) -> NSFileAccessIntent",
        type(of: NSFileAccessIntent.readingIntent(with:options:))
      ),
      (
        "(URL, WritingOptions) -> NSFileAccessIntent",
        type(of: NSFileAccessIntent.writingIntent(with:options:))
      ),
      ("KeyPath<NSFileAccessIntent, URL>", type(of: \NSFileAccessIntent.url)),
    ])
  }

  @Test("of the options, with the original's values")
  func options() {
    typealias Reading = NSFileCoordinator.ReadingOptions
    typealias Writing = NSFileCoordinator.WritingOptions
    let reading: [Reading] = [
      .withoutChanges, .resolvesSymbolicLink, .immediatelyAvailableMetadataOnly, .forUploading,
    ]
    let writing: [Writing] = [
      .forDeleting, .forMoving, .forMerging, .forReplacing, .contentIndependentMetadataOnly,
    ]
    #expect(reading.map(\.rawValue) == [1, 2, 4, 8])
    #expect(writing.map(\.rawValue) == [1, 2, 4, 8, 16])
  }

  @Test("of NSFilePresenter")
  func presenter() { checkRequirements(of: Presenter.self) }

  private final class Presenter: NSObject, NSFilePresenter {
    let presentedItemURL: URL? = nil
    let presentedItemOperationQueue = OperationQueue()
  }

  private func checkRequirements<P: NSFilePresenter & SendableMetatype>(of _: P.Type) {
    let relinquishing = "(Presenter) -> (@Sendable (Optional<@Sendable () -> ()>) -> ()) -> ()"
    let answering = "(Presenter) -> (@Sendable (Optional<Error>) -> ()) -> ()"
    typealias Asynchronous = (P) -> () async throws -> Void
    let asynchronous = "(Presenter) -> () async throws -> ()"
    check([
      ("KeyPath<Presenter, Optional<URL>>", type(of: \P.presentedItemURL)),
      ("KeyPath<Presenter, OperationQueue>", type(of: \P.presentedItemOperationQueue)),
      ("KeyPath<Presenter, Optional<URL>>", type(of: \P.primaryPresentedItemURL)),
      (relinquishing, type(of: P.relinquishPresentedItem(toReader:))),
      (relinquishing, type(of: P.relinquishPresentedItem(toWriter:))),
      (answering, type(of: P.savePresentedItemChanges(completionHandler:))),
      (answering, type(of: P.accommodatePresentedItemDeletion(completionHandler:))),
      (answering, type(of: P.accommodatePresentedItemEviction(completionHandler:))),
      (asynchronous, type(of: P.savePresentedItemChanges as Asynchronous)),
      (asynchronous, type(of: P.accommodatePresentedItemDeletion as Asynchronous)),
      (asynchronous, type(of: P.accommodatePresentedItemEviction as Asynchronous)),
      ("(Presenter) -> (URL) -> ()", type(of: P.presentedItemDidMove(to:))),
      ("(Presenter) -> () -> ()", type(of: P.presentedItemDidChange)),
      (
        "(Presenter) -> (Set<URLResourceKey>) -> ()",
        type(of: P.presentedItemDidChangeUbiquityAttributes(_:))
      ),
      (
        "KeyPath<Presenter, Set<URLResourceKey>>",
        type(of: \P.observedPresentedItemUbiquityAttributes)
      ),
      (
        "(Presenter) -> (URL, @Sendable (Optional<Error>) -> ()) -> ()",
        type(of: P.accommodatePresentedSubitemDeletion(at:completionHandler:))
      ),
      (
        "(Presenter) -> (URL) async throws -> ()",
        type(of: P.accommodatePresentedSubitemDeletion(at:))
      ),
      ("(Presenter) -> (NSFileVersion) -> ()", type(of: P.presentedItemDidGain(_:))),
      ("(Presenter) -> (NSFileVersion) -> ()", type(of: P.presentedItemDidLose(_:))),
      ("(Presenter) -> (NSFileVersion) -> ()", type(of: P.presentedItemDidResolveConflict(_:))),
      (
        "(Presenter) -> (URL, NSFileVersion) -> ()", type(of: P.presentedSubitem(at:didGain:))
      ),
      (
        "(Presenter) -> (URL, NSFileVersion) -> ()", type(of: P.presentedSubitem(at:didLose:))
      ),
      (
        "(Presenter) -> (URL, NSFileVersion) -> ()", type(of: P.presentedSubitem(at:didResolve:))
      ),
      ("(Presenter) -> (URL) -> ()", type(of: P.presentedSubitemDidAppear(at:))),
      ("(Presenter) -> (URL, URL) -> ()", type(of: P.presentedSubitem(at:didMoveTo:))),
      ("(Presenter) -> (URL) -> ()", type(of: P.presentedSubitemDidChange(at:))),
    ])
  }

  @Test("of a URL's security scope")
  func securityScope() {
    let url = URL(fileURLWithPath: "/tmp")
    #expect(url.startAccessingSecurityScopedResource())
    url.stopAccessingSecurityScopedResource()
  }

  @Test("of iCloud, whose answers are those of a user who is not signed in")
  func ubiquity() throws {
    let files = FileManager.default
    let url = URL(fileURLWithPath: "/tmp")
    let values = try url.resourceValues(forKeys: [.ubiquitousItemDownloadingStatusKey])
    let status: URLUbiquitousItemDownloadingStatus? = values.ubiquitousItemDownloadingStatus
    #expect(status == nil)
    #expect(files.ubiquityIdentityToken == nil)
    #expect(files.url(forUbiquityContainerIdentifier: nil) == nil)
    #expect(!files.isUbiquitousItem(at: url))
    try files.startDownloadingUbiquitousItem(at: url)
    #expect(throws: CocoaError.self) {
      try files.startDownloadingUbiquitousItem(at: url.appendingPathComponent("missing"))
    }
    #expect(throws: CocoaError.self) { try files.evictUbiquitousItem(at: url) }
    #expect(throws: CocoaError.self) {
      try files.setUbiquitous(true, itemAt: url, destinationURL: url)
    }
  }
}
