import Dispatch
import Synchronization
import WormholeSystem

/// The handlers of the loss of a registration, each of which is called once.
package final class LossHandlers: Sendable {
  package typealias Handler = @Sendable (AppGroupError) -> Void

  private let handlers = Mutex<[Handler]>([])

  package init() {}

  package var isEmpty: Bool { handlers.withLock(\.isEmpty) }

  package func add(_ handler: @escaping Handler) { handlers.withLock { $0.append(handler) } }

  /// Calls all handlers, and forgets them.
  package func report(_ loss: AppGroupError) {
    let all = handlers.withLock { handlers in
      defer { handlers = [] }
      return handlers
    }
    guard !all.isEmpty else { return }
    Blocking.queue().async { for handler in all { handler(loss) } }
  }
}
