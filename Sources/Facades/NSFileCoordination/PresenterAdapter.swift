import AppGroup
import Dispatch
import FileCoordination
import Foundation
import Synchronization

/// A registered `NSFilePresenter` as the coordination knows it: each call becomes an operation on the
/// presenter's queue.
final class PresenterAdapter: FilePresenter {
  /// Presenters need not be `Sendable`, as in the original: its methods are called on its queue only, and
  /// its URL and its queue from any thread, which the original demands of a presenter, too.
  private nonisolated(unsafe) let presenter: any NSFilePresenter
  let presentedItemQueue = DispatchQueue(label: "NSFilePresenter")
  private let isRemoved = Atomic(false)

  private init(_ presenter: any NSFilePresenter) {
    self.presenter = presenter
  }

  var presentedItemURL: URL? { presenter.presentedItemURL }

  // In the order of the calls, because the presenter's queue keeps the order of equal operations.
  private func call(_ body: @escaping @Sendable (any NSFilePresenter) -> Void) {
    presenter.presentedItemOperationQueue.addOperation { [self] in
      if !isRemoved.load(ordering: .acquiring) { body(presenter) }
    }
  }

  func relinquishPresentedItem(
    toReader reader: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) { call { $0.relinquishPresentedItem(toReader: Self.passing(reader)) } }

  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) { call { $0.relinquishPresentedItem(toWriter: Self.passing(writer)) } }

  private static func passing(
    _ answer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) -> @Sendable ((() -> Void)?) -> Void {
    { (reacquirer: (() -> Void)?) -> Void in
      guard let reacquirer else { return answer(nil) }
      // Called once, from another thread, which the original does with any closure, too.
      nonisolated(unsafe) let closure = reacquirer
      answer { closure() }
    }
  }

  func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { call { $0.savePresentedItemChanges(completionHandler: completionHandler) } }

  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { call { $0.accommodatePresentedItemDeletion(completionHandler: completionHandler) } }

  func presentedItemDidMove(to newURL: URL) { call { $0.presentedItemDidMove(to: newURL) } }

  func presentedItemDidChange() { call { $0.presentedItemDidChange() } }

  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    call { $0.accommodatePresentedSubitemDeletion(at: url, completionHandler: completionHandler) }
  }

  func presentedSubitemDidAppear(at url: URL) { call { $0.presentedSubitemDidAppear(at: url) } }

  func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) {
    call { $0.presentedSubitem(at: oldURL, didMoveTo: newURL) }
  }

  func presentedSubitemDidChange(at url: URL) { call { $0.presentedSubitemDidChange(at: url) } }
}

// MARK: The registered ones

extension PresenterAdapter {
  /// By the presenter; with the number of its registrations.
  private static let adapters = Mutex<[ObjectIdentifier: (adapter: PresenterAdapter, count: Int)]>(
    [:])

  static var presenters: [any NSFilePresenter] {
    adapters.withLock { $0.values.map(\.adapter) }.map(\.presenter)
  }

  /// Returns the adapter of a registered presenter; a new one for any other.
  static func of(_ presenter: any NSFilePresenter) -> PresenterAdapter {
    adapters.withLock { $0[ObjectIdentifier(presenter)]?.adapter } ?? PresenterAdapter(presenter)
  }

  static func add(_ presenter: any NSFilePresenter) {
    let new = PresenterAdapter(presenter)
    let adapter = adapters.withLock { adapters in
      let entry = adapters[ObjectIdentifier(presenter)] ?? (new, 0)
      adapters[ObjectIdentifier(presenter)] = (entry.adapter, entry.count + 1)
      return entry.count == 0 ? entry.adapter : nil
    }
    guard let adapter else { return }
    do {
      try FileCoordinator.addFilePresenter(adapter)
    } catch {
      Diagnostics.report(error)
    }
  }

  static func remove(_ presenter: any NSFilePresenter) {
    let last = adapters.withLock { adapters -> PresenterAdapter? in
      guard let (adapter, count) = adapters[ObjectIdentifier(presenter)] else { return nil }
      adapters[ObjectIdentifier(presenter)] = count > 1 ? (adapter, count - 1) : nil
      return count > 1 ? nil : adapter
    }
    guard let last else { return }
    last.isRemoved.store(true, ordering: .releasing)
    FileCoordinator.removeFilePresenter(last)
  }
}
