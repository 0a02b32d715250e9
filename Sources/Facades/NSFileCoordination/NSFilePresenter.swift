public import Foundation

/// An object that shows or edits a file or a directory; source-compatible with the Foundation
/// protocol of Apple's systems.
///
/// Callbacks are called on `presentedItemOperationQueue`. Another coordinator's access waits at
/// most 2 seconds for all answers, so a blocked queue delays it that long. Two presenters whose
/// callbacks wait for an access do not ask each other. All requirements but the first two have a
/// default, because Swift on Linux has no optional requirements. A method with a completion handler
/// has an asynchronous form; a presenter implements one of the two, and the other calls it or does
/// nothing. An asynchronous one in a type of the main actor runs there.
///
/// ```swift
/// final class Page: NSObject, NSFilePresenter {
///   let presentedItemURL: URL?
///   let presentedItemOperationQueue = OperationQueue()
///   init(_ url: URL) { presentedItemURL = url }
///   func presentedItemDidChange() { print("read it again") }
/// }
/// let page = Page(file)
/// NSFileCoordinator.addFilePresenter(page)
/// ```
@preconcurrency
public protocol NSFilePresenter: NSObjectProtocol {
  /// The item's URL; nil until the item is created. Any thread may ask.
  var presentedItemURL: URL? { get }

  /// The queue of all callbacks.
  var presentedItemOperationQueue: OperationQueue { get }

  /// The item that a sandbox opened, for an item beside it. Never read: Linux has no such sandbox.
  var primaryPresentedItemURL: URL? { get }

  /// Another access is about to read the item: stop changing it, then call `reader`.
  ///
  /// - Parameter reader: takes a closure that is called when the other access has ended.
  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((@Sendable () -> Void)?) -> Void)

  /// Another access is about to write the item: stop using it, then call `writer`.
  ///
  /// - Parameter writer: takes a closure that is called when the other access has ended.
  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void)

  /// Another access is about to read the item: write the unsaved changes.
  ///
  /// - Parameter completionHandler: an error ends the other access before it begins.
  func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// The asynchronous form; an error that it throws ends the other access before it begins.
  func savePresentedItemChanges() async throws

  /// Another access is about to delete the item, or a directory above it.
  ///
  /// - Parameter completionHandler: an error ends the other access before it begins.
  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// The asynchronous form; an error that it throws ends the other access before it begins.
  func accommodatePresentedItemDeletion() async throws

  /// Never called: nothing evicts a file on Linux.
  ///
  /// - Parameter completionHandler: would take an error that prevents the eviction.
  func accommodatePresentedItemEviction(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// Never called, like the form with a completion handler.
  func accommodatePresentedItemEviction() async throws

  /// The iCloud attributes to be notified of. Never read: there is no iCloud on Linux.
  var observedPresentedItemUbiquityAttributes: Set<URLResourceKey> { get }

  /// Never called: there is no iCloud on Linux.
  ///
  /// - Parameter attributes: would be those that changed.
  func presentedItemDidChangeUbiquityAttributes(_ attributes: Set<URLResourceKey>)

  /// The item has moved.
  func presentedItemDidMove(to newURL: URL)

  /// The item's content or attributes have changed, or it appeared or disappeared.
  func presentedItemDidChange()

  /// A conflict left a copy of the item.
  ///
  /// - Parameter version: the copy.
  func presentedItemDidGain(_ version: NSFileVersion)

  /// A version was removed.
  ///
  /// - Parameter version: the version; its content is gone.
  func presentedItemDidLose(_ version: NSFileVersion)

  /// A conflict was resolved.
  ///
  /// - Parameter version: the copy that the conflict left.
  func presentedItemDidResolveConflict(_ version: NSFileVersion)

  /// Another access is about to delete an item in the presented directory, at any depth.
  ///
  /// - Parameters:
  ///   - url: the item that is about to be deleted.
  ///   - completionHandler: an error ends the other access before it begins.
  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void)

  /// Another access is about to delete an item in the presented directory, at any depth.
  ///
  /// - Parameter url: the item that is about to be deleted.
  /// - Throws: an error that ends the other access before it begins.
  func accommodatePresentedSubitemDeletion(at url: URL) async throws

  /// An item appeared in the presented directory, at any depth.
  func presentedSubitemDidAppear(at url: URL)

  /// An item in the presented directory was moved, at any depth.
  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL)

  /// An item in the presented directory has changed, at any depth.
  func presentedSubitemDidChange(at url: URL)

  /// A conflict left a copy of an item in the presented directory.
  ///
  /// - Parameters:
  ///   - url: the item's URL.
  ///   - version: the copy.
  func presentedSubitem(at url: URL, didGain version: NSFileVersion)

  /// A version of an item in the presented directory was removed.
  ///
  /// - Parameters:
  ///   - url: the item's URL.
  ///   - version: the version; its content is gone.
  func presentedSubitem(at url: URL, didLose version: NSFileVersion)

  /// A conflict about an item in the presented directory was resolved.
  ///
  /// - Parameters:
  ///   - url: the item's URL.
  ///   - version: the copy that the conflict left.
  func presentedSubitem(at url: URL, didResolve version: NSFileVersion)
}

extension NSFilePresenter {
  /// None.
  public var primaryPresentedItemURL: URL? { nil }

  /// Lets the reader begin at once.
  public func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) { reader(nil) }

  /// Lets the writer begin at once.
  public func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) { writer(nil) }

  /// Calls the asynchronous form.
  public func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { answer(completionHandler) { try await $0.savePresentedItemChanges() } }

  /// Has nothing to save.
  public nonisolated(nonsending) func savePresentedItemChanges() async throws {}

  /// Calls the asynchronous form.
  public func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { answer(completionHandler) { try await $0.accommodatePresentedItemDeletion() } }

  /// Lets the item be deleted.
  public nonisolated(nonsending) func accommodatePresentedItemDeletion() async throws {}

  /// Calls the asynchronous form.
  public func accommodatePresentedItemEviction(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { answer(completionHandler) { try await $0.accommodatePresentedItemEviction() } }

  /// Refuses, like the original if the method is missing.
  public nonisolated(nonsending) func accommodatePresentedItemEviction() async throws {
    throw CocoaError(.featureUnsupported)
  }

  /// None.
  public var observedPresentedItemUbiquityAttributes: Set<URLResourceKey> { [] }

  /// Does nothing.
  public func presentedItemDidChangeUbiquityAttributes(_ attributes: Set<URLResourceKey>) {}

  /// Does nothing.
  public func presentedItemDidMove(to newURL: URL) {}

  /// Does nothing.
  public func presentedItemDidChange() {}

  /// Does nothing.
  public func presentedItemDidGain(_ version: NSFileVersion) {}

  /// Does nothing.
  public func presentedItemDidLose(_ version: NSFileVersion) {}

  /// Does nothing.
  public func presentedItemDidResolveConflict(_ version: NSFileVersion) {}

  /// Does nothing.
  public func presentedSubitem(at url: URL, didGain version: NSFileVersion) {}

  /// Does nothing.
  public func presentedSubitem(at url: URL, didLose version: NSFileVersion) {}

  /// Does nothing.
  public func presentedSubitem(at url: URL, didResolve version: NSFileVersion) {}

  /// Calls the asynchronous form.
  public func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { answer(completionHandler) { try await $0.accommodatePresentedSubitemDeletion(at: url) } }

  /// Lets the subitem be deleted.
  public nonisolated(nonsending) func accommodatePresentedSubitemDeletion(at url: URL) async throws
  {}

  /// Calls `presentedItemDidChange()`, like the original if the method is missing.
  public func presentedSubitemDidAppear(at url: URL) { presentedItemDidChange() }

  /// Calls `presentedItemDidChange()`, like the original if the method is missing.
  public func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) { presentedItemDidChange() }

  /// Calls `presentedItemDidChange()`, like the original if the method is missing.
  public func presentedSubitemDidChange(at url: URL) { presentedItemDidChange() }
}

extension NSFilePresenter {
  // Runs here up to its first suspension, so that no access waits for a presenter without a method.
  private func answer(
    _ completionHandler: @escaping @Sendable ((any Error)?) -> Void,
    _ method: nonisolated(nonsending) @escaping @Sendable (any NSFilePresenter) async throws -> Void
  ) {
    // As in the original, the method leaves the queue with the presenter, which need not be
    // `Sendable`: its own methods answer for what they share, and nothing else is read here.
    nonisolated(unsafe) let presenter: any NSFilePresenter = self
    Task.immediate {
      do {
        try await method(presenter)
        completionHandler(nil)
      } catch {
        completionHandler(error)
      }
    }
  }
}
