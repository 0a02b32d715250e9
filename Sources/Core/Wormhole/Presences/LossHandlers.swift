import Dispatch
import Synchronization
import WormholeSystem

/// Who wants to know of the loss of a registration, each of them once.
final class LossHandlers: Sendable {
  typealias Handler = @Sendable (AppGroupError) -> Void

  private let handlers = Mutex<[Handler]>([])

  var isEmpty: Bool { handlers.withLock(\.isEmpty) }

  func add(_ handler: @escaping Handler) { handlers.withLock { $0.append(handler) } }

  /// Calls all of them, and forgets them.
  func tell(_ loss: AppGroupError) {
    let told = handlers.withLock { handlers in
      defer { handlers = [] }
      return handlers
    }
    guard !told.isEmpty else { return }
    Blocking.queue().async { for handler in told { handler(loss) } }
  }
}
