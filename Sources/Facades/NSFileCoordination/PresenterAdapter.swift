import Dispatch
import Foundation
import Synchronization
import WormholeFiles

/// A registered `NSFilePresenter`, as coordination knows it.
final class PresenterAdapter: OriginalPresenter {
  /// Presenters need not be `Sendable`, as in the original: methods are called only on their queue.
  /// Their URL and queue are read on any thread, which the original also demands of a presenter.
  private nonisolated(unsafe) let presenter: any NSFilePresenter
  /// Not used: callbacks are operations.
  var presentedItemQueue: DispatchQueue { .main }

  private init(_ presenter: any NSFilePresenter) {
    self.presenter = presenter
  }

  // It reads no weak reference: another thread could meanwhile release the last strong one, and the
  // adapter would end here, inside the lock.
  deinit {
    let (key, identifier) = (ObjectIdentifier(presenter), ObjectIdentifier(self))
    Self.entries.withLock { entries in
      if entries[key]?.identifier == identifier { entries[key] = nil }
    }
  }

  var presentedItemURL: URL? { presenter.presentedItemURL }

  func enqueue(_ callback: @escaping @Sendable () -> Void) {
    // Its program may cancel all operations in its queue, its own and ours.
    let operation = CertainOperation(callback) { self.enqueue(callback) }
    presenter.presentedItemOperationQueue.addOperation(operation)
  }

  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) { presenter.relinquishPresentedItem(toReader: reader) }

  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) { presenter.relinquishPresentedItem(toWriter: writer) }

  func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { presenter.savePresentedItemChanges(completionHandler: completionHandler) }

  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { presenter.accommodatePresentedItemDeletion(completionHandler: completionHandler) }

  func presentedItemDidMove(to newURL: URL) { presenter.presentedItemDidMove(to: newURL) }

  func presentedItemDidChange() { presenter.presentedItemDidChange() }

  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    presenter.accommodatePresentedSubitemDeletion(at: url, completionHandler: completionHandler)
  }

  func presentedSubitemDidAppear(at url: URL) { presenter.presentedSubitemDidAppear(at: url) }

  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) {
    presenter.presentedSubitem(at: oldURL, didMoveTo: newURL)
  }

  func presentedSubitemDidChange(at url: URL) { presenter.presentedSubitemDidChange(at: url) }
}

// MARK: Versions and errors

extension PresenterAdapter {
  func refusal(for error: any Error) -> PresenterRefusal {
    let error = error as NSError
    return PresenterRefusal(
      domain: error.domain, code: error.code, description: error.localizedDescription,
      userInfo: error.userInfo)
  }

  func hear(
    _ event: KeptCopies.Event, _ copy: KeptCopies.Copy, of item: KeptCopies, isSubitem: Bool
  ) {
    let version = NSFileVersion(item, copy)
    let url = URL(fileURLWithPath: item.path)
    switch (event, isSubitem) {
    case (.gained, false): presenter.presentedItemDidGain(version)
    case (.lost, false): presenter.presentedItemDidLose(version)
    case (.resolved, false): presenter.presentedItemDidResolveConflict(version)
    case (.gained, true): presenter.presentedSubitem(at: url, didGain: version)
    case (.lost, true): presenter.presentedSubitem(at: url, didLose: version)
    case (.resolved, true): presenter.presentedSubitem(at: url, didResolve: version)
    }
  }
}

// MARK: One for each presenter

extension PresenterAdapter {
  /// Coordinators and registrations of one presenter share its adapter, because that identifies the
  /// presenter.
  //
  // A class, because the compiler (6.3) reads a weak reference of a structure in a dictionary at a
  // wrong address.
  private final class Entry {
    weak var adapter: PresenterAdapter?
    let identifier: ObjectIdentifier

    init(_ adapter: PresenterAdapter) {
      self.adapter = adapter
      identifier = ObjectIdentifier(adapter)
    }
  }

  private static let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  static var presenters: [any NSFilePresenter] {
    FileCoordinator.filePresenters.compactMap { ($0 as? PresenterAdapter)?.presenter }
  }

  static func of(_ presenter: any NSFilePresenter) -> PresenterAdapter {
    let new = PresenterAdapter(presenter)
    return entries.withLock { entries in
      if let adapter = entries[ObjectIdentifier(presenter)]?.adapter { return adapter }
      entries[ObjectIdentifier(presenter)] = Entry(new)
      return new
    }
  }
}
