package import Dispatch
package import FoundationEssentials
import Synchronization
import WormholeFiles

/// A presenter that only receives changes, on a queue that is blocked.
package final class ListeningPresenter: FilePresenter {
  package let presentedItemQueue = DispatchQueue(label: "listening-presenter")
  package let presentedItemURL: URL?

  package init(_ path: String) {
    presentedItemURL = URL(filePath: path)
    presentedItemQueue.suspend()
  }

  // A suspended queue must not be freed.
  deinit { presentedItemQueue.resume() }

  package func presentedItemDidChange() {}
}

/// A presenter that only saves.
package final class SavingPresenter: FilePresenter {
  package let presentedItemQueue = DispatchQueue(label: "saving-presenter")
  package let presentedItemURL: URL?
  private let saves = Mutex(0)

  package init(_ path: String) { presentedItemURL = URL(filePath: path) }

  /// The number of save requests.
  package var saved: Int { saves.withLock { $0 } }

  package func savePresentedItemChanges(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    saves.withLock { $0 += 1 }
    completionHandler(nil)
  }
}
