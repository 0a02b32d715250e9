import Dispatch
import FoundationEssentials
import Synchronization
import Wormhole
import WormholeSystem

/// A presenter from its registration to its removal: its item's place, its watcher, the current
/// questions to it, and its registration for other processes.
final class RegisteredPresenter: Sendable {
  private struct State {
    var exchanges: [ObjectIdentifier: PresenterExchange] = [:]
    /// The accesses for which its callbacks wait.
    var accesses = 0
    var isRemoved = false
  }

  /// Identifies it among the presenters of all processes.
  let id = String(UInt64.random(in: .min ... .max), radix: 16)
  let presenter: any FilePresenter
  let callbacks: PresenterQueue
  let watcher: ItemWatcher
  /// The requests that it itself answers.
  private let answered: AnsweredSteps
  private let state = Mutex(State())
  /// Its registration at a site; nil while it has no item.
  private typealias Registration = (
    site: PresenterSite, path: ItemPath, presence: PresenceRegistration
  )
  private let registration = Mutex<Registration?>(nil)
  private let queue = Blocking.queue()

  init(_ presenter: any FilePresenter) {
    let callbacks = PresenterQueue(presenter)
    self.presenter = presenter
    self.callbacks = callbacks
    answered = AnsweredSteps(of: presenter)
    watcher = ItemWatcher { callbacks.post($0) }
    watcher.whenMoved { [weak self] in self?.registerLater() }
  }

  /// The path of its item; nil while it has none.
  var path: ItemPath? { watcher.path }

  // MARK: Its item

  /// Reads the item's URL, watches the item, and registers it for other processes.
  ///
  /// - Throws: `WormholeError` if the presenter cannot be registered, `PresenterError` if the
  ///   item's place cannot be looked at.
  func presentItem() throws {
    let url = presenter.presentedItemURL
    do {
      let path = try url.map { try ItemPath.canonical($0.path, followingLink: true) }
      // The watcher itself follows the links of an unchanged path, and reports that.
      if path != watcher.path, url == nil || url?.path != watcher.named {
        watcher.present(path, named: url?.path)
      }
    } catch let error as Errno {
      throw PresenterError(
        description: "cannot find the presented item (\(url?.path ?? "")): \(error); look at the "
          + "directories above it (ls -ld)", underlying: error)
    }
    do throws(ThreadShortage) {
      try ThreadShortage.ruleOut()
    } catch {
      throw PresenterError(
        description: "cannot present the item (\(url?.path ?? "")): \(error)",
        underlying: error.error)
    }
    try register()
  }

  /// The item was moved, and no caller waits for the new registration.
  private func registerLater() {
    // After an error it stays registered under its old path, and is notified of changes as before.
    queue.async { Diagnostics.reporting { try self.register() } }
  }

  private func register() throws {
    let old = try registration.withLock { registration -> Registration? in
      // Excludes: a registration made after the presenter was removed.
      guard !state.withLock({ $0.isRemoved }) else { return nil }
      let path = watcher.path
      guard path != registration?.path else { return nil }
      let old = registration
      // Under the new path before the old one ends: there is always one.
      registration = try path.map { try register($0) }
      return old
    }
    old?.presence.close()
  }

  private func register(_ path: ItemPath) throws -> Registration {
    let site = try PresenterSite.registering(path)
    return (site, path, try site.enter(id, at: path, answering: answered))
  }

  /// Something happened to a copy that a conflict left.
  func hear(_ event: KeptCopies.Event, _ copy: ItemPath, of item: ItemPath) {
    guard let path, path == item || path.contains(item) else { return }
    callbacks.post([.version(event, copy, of: item, isSubitem: path != item)])
  }

  // MARK: Current questions

  /// The questions for it; empty if the demands do not concern it.
  func steps(for demands: [PresenterDemand]) -> [PresenterStep] {
    path.map { PresenterStep.steps(for: demands, ofPresenterAt: $0, answering: answered) } ?? []
  }

  /// - Returns: false if the presenter was removed.
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

  /// A callback waits for an access, until `endWait`.
  func beginWait() {
    let exchanges = state.withLock { state in
      state.accesses += 1
      return Array(state.exchanges.values)
    }
    for exchange in exchanges { exchange.presenterWaits() }
  }

  var isWaiting: Bool { state.withLock { $0.accesses > 0 } }

  func endWait() { state.withLock { $0.accesses -= 1 } }

  /// Ends everything: accesses that wait for an answer continue without it.
  func remove() {
    let exchanges = state.withLock { state in
      state.isRemoved = true
      return Array(state.exchanges.values)
    }
    callbacks.close()
    watcher.cancel()
    let old = registration.withLock { $0.take() }
    for exchange in exchanges { exchange.end() }
    old?.presence.close()
  }
}

/// The presenters of this process.
extension RegisteredPresenter {
  /// With how often each was added; each is removed as often.
  private typealias Row = (presenter: RegisteredPresenter, uses: Int)
  private static let rows = Mutex<[ObjectIdentifier: Row]>([:])

  static var areNone: Bool { rows.withLock(\.isEmpty) }

  static var all: [RegisteredPresenter] { rows.withLock { $0.values.map(\.presenter) } }

  static func registered(_ presenter: any FilePresenter) -> RegisteredPresenter? {
    rows.withLock { $0[ObjectIdentifier(presenter)]?.presenter }
  }

  static func registered(_ id: String) -> RegisteredPresenter? {
    rows.withLock { $0.values.first { $0.presenter.id == id }?.presenter }
  }

  static func add(_ presenter: any FilePresenter) throws {
    let added = rows.withLock { rows in
      let key = ObjectIdentifier(presenter)
      rows[key, default: (RegisteredPresenter(presenter), 0)].uses += 1
      return rows[key]?.presenter
    }
    do {
      // Each time, because the first addition may be about to fail on another thread.
      try added?.presentItem()
    } catch {
      remove(presenter)
      throw error
    }
  }

  static func remove(_ presenter: any FilePresenter) {
    let key = ObjectIdentifier(presenter)
    let old = rows.withLock { rows -> RegisteredPresenter? in
      rows[key]?.uses -= 1
      guard let row = rows[key], row.uses == 0 else { return nil }
      rows[key] = nil
      return row.presenter
    }
    old?.remove()
  }
}
