package import AppGroup
import FileClaims
import Synchronization
package import SystemCalls

/// One access as the presenters see it: they are asked before it begins, and hear when it is over.
///
/// Nothing is locked while they are asked, so a presenter may itself coordinate in a callback. A
/// presenter that leaves or dies while it is asked counts as having answered; one that does not answer
/// is named.
package final class PresenterConversation: Waiting, Sendable {
  /// How long all presenters together may take.
  static let patience: Duration = .seconds(2)

  /// The presenters that did not answer in time.
  package var silent: [PresenterDescription] { answers.silent }

  private struct State {
    var exchanges: [PresenterExchange] = []
    var remote: [RemoteAsking] = []
    /// Until when answers are waited for.
    var limit: ContinuousClock.Instant
    var isAsked = false
    var hasAnswers = false
    var isOver = false
  }

  private let demands: [PresenterDemand]
  private let answers = PresenterAnswers()
  private let own: RegisteredPresenter?
  private let state: Mutex<State>

  /// What presenters are to be asked; nobody is asked before the first step.
  init(
    _ demands: [PresenterDemand], for client: PresenterClient,
    until deadline: ContinuousClock.Instant
  ) {
    self.demands = demands
    state = Mutex(State(limit: deadline))
    own = client.presenter.flatMap { PresenterRegistry.shared.registered($0) }
    own?.watcher.pause()
  }

  deinit { finish(published: [:]) }

  /// Asks everybody concerned, in this process and in others, and waits for their answers, at most
  /// for `patience` and not beyond the deadline.
  ///
  /// - Throws: what a presenter signalled; the access must not begin then.
  /// - Complexity: without presenters a look for containers above the items, and one at who is
  ///   present in each.
  package static func begin(
    _ demands: [PresenterDemand], for client: PresenterClient,
    until deadline: ContinuousClock.Instant
  ) throws -> PresenterConversation {
    let conversation = PresenterConversation(demands, for: client, until: deadline)
    try conversation.run()
    return conversation
  }

  /// Asks, or looks who has answered; see `begin`. A conversation that throws is over.
  package func step() throws -> WaitingStep<Void> {
    do {
      let (isAsked, remote, isDone) = state.withLock { ($0.isAsked, $0.remote, $0.hasAnswers) }
      guard !isDone else { return .done(()) }
      if isAsked { for asking in remote { asking.look() } } else { ask() }
      let step = try answers.step(until: state.withLock(\.limit))
      guard case .done = step else { return step }
      state.withLock { $0.hasAnswers = true }
      if !silent.isEmpty { Diagnostics.report(PresenterError.silent(silent)) }
      return step
    } catch {
      finish(published: [:])
      throw error
    }
  }

  private func ask() {
    let exchanges = exchanges()
    let remote = PresenterSites.asking(demands.map { ItemPath($0.path) })
      .compactMap { RemoteAsking(demands, at: $0, answers) }
    state.withLock { state in
      state.exchanges = exchanges
      state.remote = remote
      state.isAsked = true
    }
    for asking in remote { asking.start(demands) }
    for exchange in exchanges { exchange.start() }
    state.withLock { $0.limit = min($0.limit, .now.advanced(by: Self.patience)) }
  }

  /// With the presenters of this process.
  private func exchanges() -> [PresenterExchange] {
    PresenterRegistry.shared.all.compactMap { presenter in
      guard presenter !== own, let path = presenter.path else { return nil }
      let steps = presenter.steps(for: demands)
      guard !steps.isEmpty else { return nil }
      answers.expect(
        presenter.id,
        PresenterDescription(
          processID: Program.processID, program: "this program", state: .running, path: path.text))
      return PresenterExchange(presenter, steps) { [answers] in answers.take(presenter.id, $0) }
    }
  }

  /// The access is over: reacquirers are called, and the client's own presenter is watched again.
  ///
  /// - Parameter published: what was published at each path, nil for what was removed: of that the
  ///   client's presenter is not told. Nor of what was demanded and done in place: that an item is
  ///   not there after it was to be deleted or moved, or has other attributes.
  package func finish(published: [String: FileStatus?]) {
    let (exchanges, remote, isFirst) = state.withLock { state in
      let isFirst = !state.isOver
      state.isOver = true
      return (state.exchanges, state.remote, isFirst)
    }
    guard isFirst else { return }
    for asking in remote { asking.finish() }
    for exchange in exchanges { exchange.finish() }
    guard let own else { return }
    var byPath: [ItemPath: FileStatus?] = [:]
    for (path, status) in published { byPath[ItemPath(path)] = .some(status) }
    let inPlace = demands.filter { [.deleting, .moving].contains($0.kind) }
    for path in inPlace.map({ ItemPath($0.path) })
    where byPath[path] == nil && statusIfVisible(path.text) == nil {
      byPath[path] = .some(nil)
    }
    let attributes = demands.filter { $0.kind == .metadata }.map { ItemPath($0.path) }
    own.watcher.resume(published: byPath, attributes: attributes)
    do {
      try own.presentItem()
    } catch {
      // The access itself is done; its presenter goes on as it was known before.
      Diagnostics.report(error)
    }
  }
}
