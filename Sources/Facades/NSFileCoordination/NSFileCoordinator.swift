import Dispatch
public import Foundation
import Synchronization
import Wormhole
public import WormholeFiles

/// Coordinates reading and writing of files and directories among processes and among the objects
/// of one process; source-compatible with the Foundation class of Apple's systems.
///
/// It has no mechanism of its own: each call is a call of `FileCoordinator`, with these differences
/// from the original:
/// - A writing accessor gets the URL of a private copy, which is published in one step when the
///   accessor returns. So it must write to the URL that it gets, as the original also demands.
/// - A call waits for others for at most 10 seconds. Then `error` is set; the accessor is not run.
/// - After 60 seconds others may take over an accessor's access.
/// - `error` is set exactly if the accessor was not run, as with the original. If an accessor has
///   run, changes that cannot be published are an event of `Diagnostics`; `FileCoordinator` throws.
///
/// Its `Sendable` is unchecked because it is open, like the original: its only property is
/// `Sendable`, and a subclass is responsible for its own properties.
///
/// ```swift
/// var failure: NSError?
/// NSFileCoordinator(filePresenter: nil).coordinate(writingItemAt: file, error: &failure) { url in
///   do {
///     try Data("[7,8]".utf8).write(to: url)
///   } catch {
///     print(error)
///   }
/// }
/// if let failure { print(failure.localizedDescription) }
/// ```
open class NSFileCoordinator: NSObject, @unchecked Sendable {
  /// How an item is read.
  public typealias ReadingOptions = WormholeFiles.ReadingOptions
  /// How an item is written; one option at a time.
  public typealias WritingOptions = WormholeFiles.WritingOptions

  let coordinator: FileCoordinator

  /// Makes a coordinator.
  ///
  /// - Parameter filePresenterOrNil: the presenter that coordinates; it is not notified of its own
  ///   accesses.
  public init(filePresenter filePresenterOrNil: (any NSFilePresenter)?) {
    coordinator = FileCoordinator(
      filePresenter: filePresenterOrNil.map { PresenterAdapter.of($0) })
    super.init()
  }

  /// Makes a coordinator without a presenter.
  public override convenience init() {
    self.init(filePresenter: nil)
  }

  /// The purpose of the accesses: accesses of one purpose in one process never wait for each other, and
  /// those of other processes are waited for. Set it once, before the first access, to a non-empty string, and not for a
  /// coordinator that was made for a presenter. Where the original throws an exception, it stays
  /// unchanged, which is an event of `Diagnostics`.
  open var purposeIdentifier: String {
    get { coordinator.purposeIdentifier }
    set { coordinator.purposeIdentifier = newValue }
  }

  /// Gives up every waiting access of this coordinator, and every later one: its call sets the
  /// error `CocoaError.userCancelled`, and its accessor is not run. May be called on any thread.
  open func cancel() { coordinator.cancelPermanently() }

  // MARK: Accesses

  /// Reads an item while no other access publishes it; blocks this thread.
  ///
  /// - Parameters:
  ///   - url: a file or directory; need not exist.
  ///   - options: how it is read.
  ///   - outError: gets the reason if the accessor is not run.
  ///   - reader: gets the item's URL.
  open func coordinate(
    readingItemAt url: URL, options: ReadingOptions = [], error outError: NSErrorPointer,
    byAccessor reader: (URL) -> Void
  ) {
    setting(outError, permission: .fileReadNoPermission) { begin in
      try coordinator.coordinate(readingItemAt: url, options: options) { url in
        begin()
        reader(url)
      }
    }
  }

  /// Changes an item while no other access does; blocks this thread.
  ///
  /// - Parameters:
  ///   - url: a file or directory; need not exist. If its directory does not exist either, no copy
  ///     can be published there: the accessor works at the given URL, and may make the directory.
  ///   - options: how it is written.
  ///   - outError: gets the reason if the accessor is not run.
  ///   - writer: gets the URL to write to.
  open func coordinate(
    writingItemAt url: URL, options: WritingOptions = [], error outError: NSErrorPointer,
    byAccessor writer: (URL) -> Void
  ) {
    setting(outError) { begin in
      try coordinator.coordinate(writingItemAt: url, options: options.asOriginal) { url in
        begin()
        writer(url)
      }
    }
  }

  /// Reads one item and changes another; see the forms for one item. Two such calls never wait for
  /// each other in a circle.
  open func coordinate(
    readingItemAt readingURL: URL, options readingOptions: ReadingOptions = [],
    writingItemAt writingURL: URL, options writingOptions: WritingOptions = [],
    error outError: NSErrorPointer, byAccessor readerWriter: (URL, URL) -> Void
  ) {
    setting(outError) { begin in
      try coordinator.coordinate(
        readingItemAt: readingURL, options: readingOptions, writingItemAt: writingURL,
        options: writingOptions.asOriginal
      ) { readingURL, writingURL in
        begin()
        readerWriter(readingURL, writingURL)
      }
    }
  }

  /// Changes two items; see the form for one.
  open func coordinate(
    writingItemAt url1: URL, options options1: WritingOptions = [],
    writingItemAt url2: URL, options options2: WritingOptions = [],
    error outError: NSErrorPointer, byAccessor writer: (URL, URL) -> Void
  ) {
    setting(outError) { begin in
      try coordinator.coordinate(
        writingItemAt: url1, options: options1.asOriginal, writingItemAt: url2,
        options: options2.asOriginal
      ) { url1, url2 in
        begin()
        writer(url1, url2)
      }
    }
  }

  /// Asks the presenters of many items to make way, before this coordinator accesses the items one
  /// by one inside the accessor.
  ///
  /// - Parameters:
  ///   - readingURLs: the items to read.
  ///   - readingOptions: `resolvesSymbolicLink` is left out, which is an event of `Diagnostics`.
  ///   - writingURLs: the items to change.
  ///   - writingOptions: `forReplacing` is left out, too.
  ///   - outError: gets the reason if the accessor is not run.
  ///   - batchAccessor: gets a completion handler, to be called from any thread at the end.
  open func prepare(
    forReadingItemsAt readingURLs: [URL], options readingOptions: ReadingOptions = [],
    writingItemsAt writingURLs: [URL], options writingOptions: WritingOptions = [],
    error outError: NSErrorPointer,
    byAccessor batchAccessor: (@escaping @Sendable () -> Void) -> Void
  ) {
    setting(outError, permission: Self.permission(isWriting: !writingURLs.isEmpty)) { begin in
      try coordinator.prepare(
        forReadingItemsAt: readingURLs, options: readingOptions, writingItemsAt: writingURLs,
        options: writingOptions.asOriginal
      ) { completion in
        begin()
        batchAccessor(completion)
      }
    }
  }

  /// Reads and changes any number of items, and returns at once.
  ///
  /// - Parameters:
  ///   - intents: the items; the accessor finds each at its intent's `url`.
  ///   - queue: where the accessor is called.
  ///   - accessor: called once: with nil if access was granted, otherwise with the reason. Changes
  ///     that could not be published are an event of `Diagnostics`: the original has no such case.
  open func coordinate(
    with intents: [NSFileAccessIntent], queue: OperationQueue,
    byAccessor accessor: @escaping @Sendable ((any Error)?) -> Void
  ) {
    // The access lasts until the accessor has returned, so the call's own queue waits for that.
    let permission = Self.permission(isWriting: intents.contains { !$0.intent.isReading })
    let isCalled = Atomic(false)
    coordinator.coordinate(
      with: intents.map(\.intent), queue: DispatchQueue(label: "NSFileCoordinator")
    ) { error in
      let reason = error.map { Self.foundationError($0, permission: permission) }
      guard !isCalled.exchange(true, ordering: .relaxed) else {
        if let error { Diagnostics.report(error) }
        return
      }
      let operation = CertainOperation {
        accessor(reason)
      } otherwise: {
        accessor(reason ?? CocoaError(.userCancelled))
      }
      queue.addOperations([operation], waitUntilFinished: true)
    }
  }

  // MARK: Moves

  /// Does nothing: a move needs no preparation.
  open func item(at oldURL: URL, willMoveTo newURL: URL) {}

  /// Reports that the accessor of an access `forMoving` has moved the item: its presenters, and
  /// those of its contents and of the directories above, are notified.
  open func item(at oldURL: URL, didMoveTo newURL: URL) {
    coordinator.item(at: oldURL, didMoveTo: newURL)
  }

  /// Does nothing: there is no iCloud on Linux.
  open func item(at url: URL, didChangeUbiquityAttributes attributes: Set<URLResourceKey>) {}

  // MARK: Presenters

  /// Registers a presenter, which is retained until it is removed as often as it was added. A
  /// registration that fails is an event of `Diagnostics`, because the original has no error here.
  open class func addFilePresenter(_ filePresenter: any NSFilePresenter) {
    Diagnostics.reporting {
      try FileCoordinator.addFilePresenter(PresenterAdapter.of(filePresenter))
    }
  }

  /// Ends a registration: no callback begins after this returns.
  open class func removeFilePresenter(_ filePresenter: any NSFilePresenter) {
    FileCoordinator.removeFilePresenter(PresenterAdapter.of(filePresenter))
  }

  /// The registered presenters of this process, in no order.
  open class var filePresenters: [any NSFilePresenter] { PresenterAdapter.presenters }

  // MARK: Errors

  /// The original's code for lacking permission.
  private static func permission(isWriting: Bool) -> CocoaError.Code {
    isWriting ? .fileWriteNoPermission : .fileReadNoPermission
  }

  /// Sets the error of an access only if its accessor was not run, as callers assume: they would
  /// resume again a continuation that the accessor resumed. Any other is an event of `Diagnostics`.
  ///
  /// - Parameter access: calls the closure that it gets as its accessor begins.
  private func setting(
    _ outError: NSErrorPointer, permission: CocoaError.Code = .fileWriteNoPermission,
    _ access: (_ begin: () -> Void) throws -> Void
  ) {
    var hasBegun = false
    do {
      try access { hasBegun = true }
    } catch {
      if hasBegun { return Diagnostics.report(error) }
      outError?.pointee = Self.foundationError(error, permission: permission)
    }
  }

  /// The presenter's error, even of another process; the original's for a cancelled access;
  /// otherwise the sentence that names the obstacle.
  private static func foundationError(
    _ error: any Error, permission: CocoaError.Code
  ) -> NSError {
    if let error = error as? PresenterError, let refusal = error.refusal {
      var details = refusal.userInfoObjects
      details[NSLocalizedDescriptionKey] = refusal.description
      details[NSDebugDescriptionErrorKey] = "\(error)"
      return NSError(domain: refusal.domain, code: refusal.code, userInfo: details)
    }
    guard let error = error as? WormholeError else { return error as NSError }
    let details: [String: Any] = [
      NSLocalizedDescriptionKey: "\(error)", NSUnderlyingErrorKey: error,
    ]
    let code: CocoaError.Code? =
      switch error.code {
      case .permissionDenied: permission
      case .cancelled: .userCancelled
      case .directoryMissing: .fileNoSuchFile
      case .noSpace: .fileWriteOutOfSpace
      default: nil
      }
    // The original has no such code.
    guard let code else {
      return NSError(domain: "FileCoordinationError", code: 1, userInfo: details)
    }
    return NSError(domain: NSCocoaErrorDomain, code: code.rawValue, userInfo: details)
  }
}

extension WritingOptions {
  /// The options that let an accessor find the item where the original's does: code for the
  /// original removes an item before it replaces it, and makes the directory of one that has none.
  fileprivate var asOriginal: WritingOptions {
    union(contains(.forReplacing) ? [.makingDirectory, .showingItem] : .makingDirectory)
  }
}

/// One item of an access to several; the accessor reads the item's URL here.
///
/// ```swift
/// let intent = NSFileAccessIntent.writingIntent(with: file)
/// NSFileCoordinator().coordinate(with: [intent], queue: OperationQueue()) { error in
///   if error == nil { print(intent.url.path) }     // where to write
/// }
/// ```
///
/// Its `Sendable` is unchecked because it is open, like the original: its own property is constant,
/// and a subclass is responsible for those that it adds.
open class NSFileAccessIntent: NSObject, @unchecked Sendable {
  let intent: FileAccessIntent

  /// An intent for a test, which overrides `url`: it names no item that could be changed.
  public override init() {
    intent = FileAccessIntent.readingIntent(with: URL(fileURLWithPath: "/dev/null"))
  }

  private init(_ intent: FileAccessIntent) {
    self.intent = intent
  }

  /// To read an item.
  open class func readingIntent(
    with url: URL, options: NSFileCoordinator.ReadingOptions = []
  ) -> NSFileAccessIntent {
    NSFileAccessIntent(FileAccessIntent.readingIntent(with: url, options: options))
  }

  /// To change an item.
  open class func writingIntent(
    with url: URL, options: NSFileCoordinator.WritingOptions = []
  ) -> NSFileAccessIntent {
    NSFileAccessIntent(FileAccessIntent.writingIntent(with: url, options: options.asOriginal))
  }

  /// The URL to use for the item while the accessor runs; before that, the requested URL.
  open var url: URL { intent.url }
}
