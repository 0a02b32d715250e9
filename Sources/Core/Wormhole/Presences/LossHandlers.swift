import Dispatch
import Synchronization
import WormholeSystem

/// Who wants to know of the loss of a registration, each of them once.
package final class LossHandlers: Sendable {
  package typealias Handler = @Sendable (AppGroupError) -> Void

  private let handlers = Mutex<[Handler]>([])

  package init() {}

  package var isEmpty: Bool { handlers.withLock(\.isEmpty) }

  package func add(_ handler: @escaping Handler) { handlers.withLock { $0.append(handler) } }

  /// Calls all of them, and forgets them.
  package func tell(_ loss: AppGroupError) {
    let told = handlers.withLock { handlers in
      defer { handlers = [] }
      return handlers
    }
    guard !told.isEmpty else { return }
    Blocking.queue().async { for handler in told { handler(loss) } }
  }
}
