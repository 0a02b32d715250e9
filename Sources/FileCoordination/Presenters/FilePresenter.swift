public import Dispatch
public import FoundationEssentials

/// An object that shows or edits a file or a directory, and is asked before others use it and told
/// what others did to it.
///
/// It is registered with `FileCoordinator.addFilePresenter(_:)`, and retained until it is removed.
/// Callbacks come on `presentedItemQueue`, one at a time and in order, never for operations of a
/// coordinator that was made for this presenter. Whoever asks waits 2 seconds at most for all answers
/// to one access (50 ms for those of a process that is stopped) and then goes on without them, so a
/// callback should answer soon. It may coordinate itself: nobody holds anything while it is asked.
///
/// What happens to the item is noticed by watching it, so it does not matter whether the others
/// coordinate. The methods have the meaning of those of `NSFilePresenter`; all but the first two
/// requirements have a default. A presenter is asked only for what it implements: nobody waits for one
/// that only hears of changes, even while its queue is blocked.
///
/// A conformance is never isolated to an actor, for callbacks come from elsewhere: the compiler refuses
/// methods of the main actor, so a view controller's are `nonisolated` and say where they are called
/// (`MainActor.assumeIsolated`, with the main queue as `presentedItemQueue`).
public protocol FilePresenter: AnyObject, Sendable {
  /// Inferred: it tells whether the presenter implements the method itself. The same holds for the others.
  associatedtype _ReaderAnswer
  /// Inferred.
  associatedtype _WriterAnswer
  /// Inferred.
  associatedtype _SaveAnswer
  /// Inferred.
  associatedtype _DeletionAnswer
  /// Inferred.
  associatedtype _SubitemDeletionAnswer

  /// Where the item is; nil as long as it has not been created.
  ///
  /// Asked when the presenter is registered, and again after each coordinated access of a
  /// coordinator that was made for it. Any thread may ask.
  var presentedItemURL: URL? { get }

  /// Where all callbacks are called.
  var presentedItemQueue: DispatchQueue { get }

  /// Somebody is about to read the item: stop changing it, then call `reader`. By default that is
  /// called at once.
  ///
  /// - Parameter reader: may be given what is to be called when the other is done.
  @discardableResult
  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) -> _ReaderAnswer

  /// Somebody is about to write the item: stop using it, then call `writer`. By default that is
  /// called at once.
  ///
  /// - Parameter writer: may be given what is to be called when the other is done; it is called
  ///   exactly once, also when the other's process dies.
  @discardableResult
  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable (_ reacquirer: (@Sendable () -> Void)?) -> Void
  ) -> _WriterAnswer

  /// Somebody is about to read the item, or to merge into it: write what is not written yet. By
  /// default there is nothing to write.
  ///
  /// - Parameter completionHandler: an error ends the other's access before it began.
  @discardableResult
  func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> _SaveAnswer

  /// Somebody is about to delete or replace the item, or a directory above it: close what shows it.
  /// By default nobody is in the way.
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

  /// Somebody is about to delete or replace something in the presented directory, at any depth. By
  /// default nobody is in the way.
  ///
  /// - Parameters:
  ///   - url: what is about to be deleted.
  ///   - completionHandler: an error ends the other's access before it began.
  @discardableResult
  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> _SubitemDeletionAnswer

  /// There is something new in the presented directory, at any depth. By default the same as
  /// `presentedItemDidChange()`.
  func presentedSubitemDidAppear(at url: URL)

  /// Something was renamed or moved that is in the presented directory, at any depth; what a moved
  /// directory contains is not told of. By default the same as `presentedItemDidChange()`.
  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL)

  /// Something in the presented directory has changed, at any depth, or is gone. By default the
  /// same as `presentedItemDidChange()`.
  func presentedSubitemDidChange(at url: URL)
}

/// The result of a default implementation, by which it is known that a presenter does not answer itself.
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

  /// Lets the subitem be deleted.
  @discardableResult
  public func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) -> AnsweredByDefault {
    completionHandler(nil)
    return AnsweredByDefault()
  }

  /// Calls `presentedItemDidChange()`: who does not care which subitem it is, hears of all.
  public func presentedSubitemDidAppear(at url: URL) { presentedItemDidChange() }

  /// Calls `presentedItemDidChange()`: who does not care which subitem it is, hears of all.
  public func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) { presentedItemDidChange() }

  /// Calls `presentedItemDidChange()`: who does not care which subitem it is, hears of all.
  public func presentedSubitemDidChange(at url: URL) { presentedItemDidChange() }
}
