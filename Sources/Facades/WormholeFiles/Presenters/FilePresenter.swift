public import Dispatch
public import FoundationEssentials
public import Wormhole

/// An object that shows or edits a file or a directory. It is asked before others use the item, and
/// is notified of their changes.
///
/// Register it with `FileCoordinator.addFilePresenter(_:)`; it is retained until it is removed.
/// Callbacks are called on `presentedItemQueue`, one at a time and in order, never for operations
/// of a coordinator made for this presenter. An access waits at most 2 seconds for all answers
/// (50 ms for a stopped process) and then continues without them, so callbacks should answer soon.
/// A callback may coordinate: the access holds nothing while presenters are asked, and two
/// presenters whose callbacks wait for an access do not ask each other.
///
/// The item is watched, so changes by programs that do not coordinate are noticed, too. The methods
/// mean the same as those of `NSFilePresenter`; all but the first two requirements have a default.
/// A presenter is asked only for methods that it implements: no access waits for a presenter that
/// is only notified of changes, even while its queue is blocked.
///
/// A conformance is never isolated to an actor, because callbacks come from elsewhere. The compiler
/// refuses methods of the main actor, so a view controller's are `nonisolated` and state where they
/// run (`MainActor.assumeIsolated`, with the main queue as `presentedItemQueue`).
///
/// ```swift
/// final class Page: FilePresenter {
///   let presentedItemURL: URL?
///   let presentedItemQueue = DispatchQueue(label: "page")
///   init(_ url: URL) { presentedItemURL = url }
///   func presentedItemDidChange() { print("read it again") }
/// }
/// let page = Page(file)
/// try FileCoordinator.addFilePresenter(page)
/// // … and when the page is closed:
/// FileCoordinator.removeFilePresenter(page)
/// ```
public protocol FilePresenter: AnyObject, Sendable {
  /// Inferred: shows whether the presenter itself implements the method. So do the others.
  associatedtype _ReaderAnswer
  /// Inferred.
  associatedtype _WriterAnswer
  /// Inferred.
  associatedtype _SaveAnswer
  /// Inferred.
  associatedtype _DeletionAnswer
  /// Inferred.
  associatedtype _SubitemDeletionAnswer
  /// Inferred.
  associatedtype _ChangeAnswer

  /// The item's URL; nil until the item is created.
  ///
  /// A link on its path is followed, even when it is later pointed elsewhere: the item is then
  /// another one, whose differences are reported as changes.
  ///
  /// Read when the presenter is registered, and again after each coordinated access of a
  /// coordinator made for it. Any thread may read it.
  var presentedItemURL: URL? { get }

  /// The queue of all callbacks.
  var presentedItemQueue: DispatchQueue { get }

  /// Another access is about to read the item: stop changing it, then call `reader`. The default
  /// calls it at once.
  ///
  /// - Parameter reader: takes a closure that is called when the other access has ended.
  @discardableResult
  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) -> _ReaderAnswer

  /// Another access is about to write the item: stop using it, then call `writer`. The default
  /// calls it at once.
  ///
  /// - Parameter writer: takes a closure that is called when the other access has ended: exactly
  ///   once, even if the other process dies.
  @discardableResult
  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) -> _WriterAnswer

  /// Another access is about to read the item, or to merge into it: write the unsaved changes. The
  /// default has none.
  ///
  /// - Parameter completionHandler: an error ends the other access before it begins.
  @discardableResult
  func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> _SaveAnswer

  /// Another access is about to delete or replace the item, or a directory above it: close its
  /// views. By default the access continues at once.
  ///
  /// - Parameter completionHandler: an error ends the other access before it begins.
  @discardableResult
  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> _DeletionAnswer

  /// The item has moved, because it or a directory above it was moved. Does nothing by default.
  func presentedItemDidMove(to newURL: URL)

  /// The item's content or attributes have changed, or it appeared or disappeared. May be called
  /// without a change. Does nothing by default.
  func presentedItemDidChange()

  /// Like `presentedItemDidChange()`, for a presenter that needs to know which process changed the
  /// item; called instead of it if implemented. By default it calls `presentedItemDidChange()`.
  ///
  /// - Parameter publisher: the process that published the current content through a coordinator;
  ///   nil for a directory, and if it is unknown (see `FileCoordinator.publisher(ofItemAt:)`).
  @discardableResult
  func presentedItemDidChange(by publisher: Publisher?) -> _ChangeAnswer

  /// Another access is about to delete or replace an item in the presented directory, at any depth.
  /// By default it continues at once.
  ///
  /// - Parameters:
  ///   - url: the item that is about to be deleted.
  ///   - completionHandler: an error ends the other access before it begins.
  @discardableResult
  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> _SubitemDeletionAnswer

  /// An item appeared in the presented directory, at any depth. Calls `presentedItemDidChange()` by
  /// default.
  func presentedSubitemDidAppear(at url: URL)

  /// An item in the presented directory was renamed or moved, at any depth; a moved directory's
  /// contents are not reported one by one. Calls `presentedItemDidChange()` by default.
  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL)

  /// An item in the presented directory, at any depth, has changed or is gone. Calls
  /// `presentedItemDidChange()` by default.
  func presentedSubitemDidChange(at url: URL)
}

/// The result of a default implementation. It shows that a presenter itself does not answer.
///
/// ```swift
/// // A presenter without its own method for it delays no access.
/// final class Page: FilePresenter {
///   let presentedItemURL: URL? = nil
///   let presentedItemQueue = DispatchQueue(label: "page")
/// }
/// ```
public struct AnsweredByDefault: Sendable {}

extension FilePresenter {
  /// Lets the reader begin at once.
  @discardableResult
  public func relinquishPresentedItem(
    toReader reader: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) -> AnsweredByDefault {
    reader(nil)
    return AnsweredByDefault()
  }

  /// Lets the writer begin at once.
  @discardableResult
  public func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) -> AnsweredByDefault {
    writer(nil)
    return AnsweredByDefault()
  }

  /// Has nothing to save.
  @discardableResult
  public func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> AnsweredByDefault {
    completionHandler(nil)
    return AnsweredByDefault()
  }

  /// Lets the item be deleted.
  @discardableResult
  public func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> AnsweredByDefault {
    completionHandler(nil)
    return AnsweredByDefault()
  }

  /// Does nothing.
  public func presentedItemDidMove(to newURL: URL) {}

  /// Does nothing.
  public func presentedItemDidChange() {}

  /// Calls `presentedItemDidChange()`.
  @discardableResult
  public func presentedItemDidChange(by publisher: Publisher?) -> AnsweredByDefault {
    presentedItemDidChange()
    return AnsweredByDefault()
  }

  /// Reports a change; with its publisher only if the presenter itself implements that method.
  func reportChange(at url: URL?) {
    guard _ChangeAnswer.self != AnsweredByDefault.self else { return presentedItemDidChange() }
    presentedItemDidChange(by: url.flatMap { ItemPublisher.of($0.path) })
  }

  /// Lets the subitem be deleted.
  @discardableResult
  public func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> AnsweredByDefault {
    completionHandler(nil)
    return AnsweredByDefault()
  }

  /// Calls `presentedItemDidChange()`, for presenters that do not distinguish subitems.
  public func presentedSubitemDidAppear(at url: URL) { reportChange(at: url) }

  /// Calls `presentedItemDidChange()`, for presenters that do not distinguish subitems.
  public func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) { reportChange(at: newURL) }

  /// Calls `presentedItemDidChange()`, for presenters that do not distinguish subitems.
  public func presentedSubitemDidChange(at url: URL) { reportChange(at: url) }
}
