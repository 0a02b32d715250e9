import AppGroup
import Synchronization
import SystemCalls

/// A presenter between its registration and its removal: where its item is now, what watches it,
/// what it is being asked.
final class RegisteredPresenter: Sendable {
  private struct State {
    var exchanges: [ObjectIdentifier: PresenterExchange] = [:]
    var isRemoved = false
  }

  /// Names it among all presenters of all processes.
  let id: String
  let presenter: any FilePresenter
  let mailbox: PresenterMailbox
  let watcher: ItemWatcher
  private let state = Mutex(State())

  init(_ presenter: any FilePresenter, id: String) {
    let mailbox = PresenterMailbox(presenter)
    self.id = id
    self.presenter = presenter
    self.mailbox = mailbox
    watcher = ItemWatcher { mailbox.post($0) }
  }

  /// Where its item is; nil as long as it has none.
  var path: ItemPath? { watcher.path }

  // MARK: What it is being asked

  /// - Returns: false when the presenter was removed.
  func open(_ exchange: PresenterExchange) -> Bool {
    state.withLock { state in
      guard !state.isRemoved else { return false }
      state.exchanges[ObjectIdentifier(exchange)] = exchange
      return true
    }
  }

  func close(_ exchange: PresenterExchange) {
    state.withLock { _ = $0.exchanges.removeValue(forKey: ObjectIdentifier(exchange)) }
  }

  /// Ends everything: whoever waits for an answer goes on without it.
  func remove() {
    let exchanges = state.withLock { state in
      state.isRemoved = true
      return Array(state.exchanges.values)
    }
    mailbox.close()
    watcher.cancel()
    for exchange in exchanges { exchange.leave() }
  }
}
