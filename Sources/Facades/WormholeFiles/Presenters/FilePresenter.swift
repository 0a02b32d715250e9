public import Dispatch
public import FoundationEssentials
public import Wormhole

/// An object that shows or edits a file or a directory. It is asked before others use the item, and
/// hears of their changes.
///
/// It is registered with `FileCoordinator.addFilePresenter(_:)`, and retained until it is removed.
/// Callbacks come on `presentedItemQueue`, one at a time and in order, never for operations of a
/// coordinator that was made for this presenter. An access waits 2 seconds at most for all answers (50
/// ms for those of a process that is stopped) and then goes on without them, so a callback should answer
/// soon. A callback may coordinate itself: the access holds nothing while presenters are asked.
///
/// The item is watched, so changes by programs that do not coordinate are noticed, too. The methods have
/// the meaning of those of `NSFilePresenter`; all but the first two requirements have a default. A
/// presenter is asked only for the methods that it implements: no access waits for one that only hears
/// of changes, even while its queue is blocked.
///
/// A conformance is never isolated to an actor, because callbacks come from elsewhere: the compiler
/// refuses methods of the main actor, so a view controller's are `nonisolated` and say where they run
/// (`MainActor.assumeIsolated`, with the main queue as `presentedItemQueue`).
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
  /// Inferred: it shows whether the presenter implements the method itself. The same holds for the others.
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

  /// Where the item is; nil as long as it has not been created.
  ///
  /// Asked when the presenter is registered, and again after each coordinated access of a
  /// coordinator that was made for it. Any thread may ask.
  var presentedItemURL: URL? { get }

  /// Where all callbacks are called.
  var presentedItemQueue: DispatchQueue { get }

  /// Another access is about to read the item: stop changing it, then call `reader`. By default that is
  /// called at once.
  ///
  /// - Parameter reader: takes a closure that is called when the other access has ended.
  @discardableResult
  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) -> _ReaderAnswer

  /// Another access is about to write the item: stop using it, then call `writer`. By default that is
  /// called at once.
  ///
  /// - Parameter writer: takes a closure that is called when the other access has ended: exactly once,
  ///   also when the other process dies.
  @discardableResult
  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) -> _WriterAnswer

  /// Another access is about to read the item, or to merge into it: write the unsaved changes. By default
  /// there are none.
  ///
  /// - Parameter completionHandler: an error ends the other's access before it began.
  @discardableResult
  func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> _SaveAnswer

  /// Another access is about to delete or replace the item, or a directory above it: close its views.
  /// By default the access goes on at once.
  ///
  /// - Parameter completionHandler: an error ends the other's access before it began.
  @discardableResult
  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> _DeletionAnswer

  /// The item is elsewhere now, because it or a directory above it was moved. By default nothing.
  func presentedItemDidMove(to newURL: URL)

  /// The item's content or attributes have changed, or it appeared, or it is gone. May come without
  /// need. By default nothing.
  func presentedItemDidChange()

  /// The same, for a presenter that wants to know who changed the item; called instead of
  /// `presentedItemDidChange()` where it is implemented. By default it calls that.
  ///
  /// - Parameter publisher: the process that published the current content through a coordinator; nil for a
  ///   directory, and where it is not told (see `FileCoordinator.publisher(ofItemAt:)`).
  @discardableResult
  func presentedItemDidChange(by publisher: Publisher?) -> _ChangeAnswer

  /// Another access is about to delete or replace something in the presented directory, at any depth. By
  /// default it goes on at once.
  ///
  /// - Parameters:
  ///   - url: the item that is about to be deleted.
  ///   - completionHandler: an error ends the other's access before it began.
  @discardableResult
  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> _SubitemDeletionAnswer

  /// There is something new in the presented directory, at any depth. By default the same as
  /// `presentedItemDidChange()`.
  func presentedSubitemDidAppear(at url: URL)

  /// Something in the presented directory was renamed or moved, at any depth; the contents of a moved
  /// directory are not reported one by one. By default the same as `presentedItemDidChange()`.
  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL)

  /// Something in the presented directory has changed, at any depth, or is gone. By default the
  /// same as `presentedItemDidChange()`.
  func presentedSubitemDidChange(at url: URL)
}

/// The result of a default implementation. It shows that a presenter does not answer itself.
///
/// ```swift
/// // A presenter without a method of its own for it delays no access.
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

  /// Tells of a change, and by whom if the presenter implements that itself: otherwise nobody looks.
  func tellChange(at url: URL?) {
    guard _ChangeAnswer.self != AnsweredByDefault.self else { return presentedItemDidChange() }
    presentedItemDidChange(by: url.flatMap { FileCoordinator.publisher(ofItemAt: $0) })
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
  public func presentedSubitemDidAppear(at url: URL) { tellChange(at: url) }

  /// Calls `presentedItemDidChange()`, for presenters that do not distinguish subitems.
  public func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) { tellChange(at: newURL) }

  /// Calls `presentedItemDidChange()`, for presenters that do not distinguish subitems.
  public func presentedSubitemDidChange(at url: URL) { tellChange(at: url) }
}

extension FileCoordinator {
  /// Registers a presenter: from now on it is asked before others use its item, and hears what they
  /// did to it. It is retained until it is removed as often as it was added.
  ///
  /// An access that begins in the same moment may not ask it any more; register while reading the item
  /// under coordination, or read it afterwards.
  ///
  /// - Parameter presenter: an item that does not exist yet is watched for; one that has no URL yet
  ///   is asked for it after each coordinated access of its own.
  /// - Throws: an error with a sentence when the user's container for file coordination cannot be
  ///   used, or the directories above the item may not be looked at.
  /// - Complexity: for a directory one look at each entry in it, at any depth, and one watch for
  ///   each directory; a descriptor for the item and one for its registration; a mailbox for all
  ///   presenters of the process in one container.
  public static func addFilePresenter(_ presenter: any FilePresenter) throws {
    try RegisteredPresenter.add(presenter)
  }

  /// Ends a registration: no callback begins after this returns, and no access waits for one that has
  /// begun. May be called in a callback. A reacquirer that it has handed in is still called.
  ///
  /// - Parameter presenter: one that is not registered is left alone.
  public static func removeFilePresenter(_ presenter: any FilePresenter) {
    RegisteredPresenter.remove(presenter)
  }

  /// Returns the process that published a file's present content through a coordinator, and when.
  ///
  /// An extended attribute of the file says it, which is set before the file takes the item's place,
  /// and speaks of that file's content only: nil after a program has changed the file without a
  /// coordinator, for a copy, for a directory, and on a file system without extended attributes. It is the
  /// publisher's own word, as for values. Its `peer` is nil.
  ///
  /// - Complexity: four system calls.
  public static func publisher(ofItemAt url: URL) -> Publisher? { ItemPublisher.of(url.path) }

  /// Whether a presenter is registered now.
  package static func isRegistered(_ presenter: any FilePresenter) -> Bool {
    RegisteredPresenter.registered(presenter) != nil
  }

  /// The registered presenters of this process, in no order.
  public static var filePresenters: [any FilePresenter] {
    RegisteredPresenter.all.map(\.presenter)
  }
}
