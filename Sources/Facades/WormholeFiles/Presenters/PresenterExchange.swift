import Synchronization

/// The questions of one access to one presenter of this process, and the answers.
///
/// ```
/// asking ── the last answer, a refusal, or the presenter leaves ──▶ answered
///    │                                                                 │
///    └────────────── the access is over (finish) ─────────▶ over ◀─────┘
/// ```
/// Reacquirers are called when the access is over, each exactly once; one that is passed after
/// that, by a presenter that was stopped or slow, at once.
final class PresenterExchange: Sendable {
  typealias Outcome = Result<Void, any Error>

  private enum Phase { case asking, answered, over }

  private struct State {
    var phase = Phase.asking
    /// The number of answered steps: a second answer to one is ignored.
    var answers = 0
    var reacquirers: [@Sendable () -> Void] = []
  }

  private let presenter: RegisteredPresenter
  private let steps: [PresenterStep]
  private let answered: @Sendable (Outcome) -> Void
  private let state = Mutex(State())

  /// - Parameter answered: called once, on any thread, unless the access is over before.
  init(
    _ presenter: RegisteredPresenter, _ steps: [PresenterStep],
    answered: @escaping @Sendable (Outcome) -> Void
  ) {
    self.presenter = presenter
    self.steps = steps
    self.answered = answered
  }

  func start() {
    guard presenter.open(self) else { return leave() }
    ask(0)
  }

  private func ask(_ index: Int) {
    guard index < steps.count else { return end(.success(())) }
    let step = steps[index]
    presenter.callbacks.post { presenter in
      // The access was given up meanwhile.
      guard self.state.withLock({ $0.phase }) == .asking else { return }
      self.perform(step, index, on: presenter)
    }
  }

  private func perform(_ step: PresenterStep, _ index: Int, on presenter: any FilePresenter) {
    let completion: @Sendable ((any Error)?) -> Void = { self.take($0, nil, index) }
    let relinquished: @Sendable ((@Sendable () -> Void)?) -> Void = { self.take(nil, $0, index) }
    switch step {
    case .relinquishToReader: presenter.relinquishPresentedItem(toReader: relinquished)
    case .relinquishToWriter: presenter.relinquishPresentedItem(toWriter: relinquished)
    case .save: presenter.savePresentedItemChanges(completionHandler: completion)
    case .accommodateDeletion:
      presenter.accommodatePresentedItemDeletion(completionHandler: completion)
    case .accommodateSubitemDeletion(let path):
      presenter.accommodatePresentedSubitemDeletion(at: path.url, completionHandler: completion)
    }
  }

  private func take(_ error: (any Error)?, _ reacquirer: (@Sendable () -> Void)?, _ index: Int) {
    let (isNew, phase) = state.withLock { state in
      guard state.answers == index else { return (false, state.phase) }
      state.answers += 1
      // Excludes: the access ending between the look and the keeping, which would lose the call.
      if state.phase != .over, let reacquirer { state.reacquirers.append(reacquirer) }
      return (true, state.phase)
    }
    guard isNew else { return }
    if phase == .over, let reacquirer { presenter.callbacks.post(owed: reacquirer) }
    guard phase == .asking else { return }
    if let error { end(.failure(error)) } else { ask(index + 1) }
  }

  private func end(_ outcome: Outcome) {
    let isFirst = state.withLock { state in
      guard state.phase == .asking else { return false }
      state.phase = .answered
      return true
    }
    if isFirst { answered(outcome) }
  }

  /// The presenter was removed: no access waits for it any more.
  func leave() { end(.success(())) }

  /// The access is over, or given up.
  func finish() {
    let reacquirers = state.withLock { state in
      state.phase = .over
      defer { state.reacquirers = [] }
      return state.reacquirers
    }
    presenter.close(self)
    for reacquirer in reacquirers { presenter.callbacks.post(owed: reacquirer) }
  }
}
