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
  ///
  /// - Parameter presenter: the one that the coordinator was made for, which hears nothing of its accesses.
  init(
    _ demands: [PresenterDemand], for presenter: (any FilePresenter)?,
    until deadline: ContinuousClock.Instant
  ) {
    self.demands = demands
    state = Mutex(State(limit: deadline))
    own = presenter.flatMap { PresenterRegistry.shared.registered($0) }
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
    _ demands: [PresenterDemand], for presenter: (any FilePresenter)?,
    until deadline: ContinuousClock.Instant
  ) throws -> PresenterConversation {
    let conversation = PresenterConversation(demands, for: presenter, until: deadline)
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

  /// The access is over: reacquirers are called, and the coordinator's own presenter is watched again.
  ///
  /// - Parameter published: what was published at each path, nil for what was removed: of that the
  ///   own presenter is not told. Nor of what was demanded and done in place: that an item is
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

extension PresenterConversation {
  /// Notifies the presenters of the item and of its contents of their new places, and those of
  /// directories above that something in them was moved; the mover's own presenter knows.
  package static func tellMoved(
    from old: String, to new: String, by presenter: (any FilePresenter)?
  ) {
    let (from, to) = (place(old), place(new))
    guard from != to else { return }
    let own = presenter.flatMap { PresenterRegistry.shared.registered($0) }
    for presenter in PresenterRegistry.shared.all where presenter.path != nil {
      presenter.watcher.follow(from: from, to: to, isOwn: presenter === own)
    }
    for site in PresenterSites.asking([from]) {
      for member in site.others()
      where member.path == from || from.contains(member.path) || member.path.contains(from) {
        site.tellMoved(member, from: from, to: to)
      }
    }
  }

  private static func place(_ path: String) -> ItemPath {
    do {
      return try ItemPath.canonical(path, followingLink: false)
    } catch {
      // A directory above that may not be looked at: it is the same place as it is written, at least.
      return ItemPath(path)
    }
  }
}

/// The answers that one conversation waits for.
final class PresenterAnswers: Sendable {
  private struct State {
    var waiting: [String: PresenterDescription] = [:]
    var silent: [PresenterDescription] = []
    var failure: (any Error)?

    /// - Returns: false if the presenter is not waited for, or not any more.
    mutating func endWait(for id: String) -> Bool { waiting.removeValue(forKey: id) != nil }
  }

  private let latch = WakeLatch()
  private let state = Mutex(State())

  /// How often presenters of other processes are looked at while they are waited for: the one thing
  /// no event tells is that a process was stopped.
  private static let interval: Duration = .milliseconds(50)

  func expect(_ id: String, _ description: PresenterDescription) {
    state.withLock { $0.waiting[id] = description }
  }

  var waiting: Set<String> { state.withLock { Set($0.waiting.keys) } }

  /// The presenters that did not answer, in the state of the last look.
  var silent: [PresenterDescription] { state.withLock { $0.silent } }

  func take(_ id: String, _ outcome: PresenterExchange.Outcome) {
    state.withLock { state in
      guard state.endWait(for: id) else { return }
      if case .failure(let error) = outcome, state.failure == nil { state.failure = error }
    }
    latch.raise()
  }

  /// Goes on without an answer.
  func giveUp(_ id: String, _ description: PresenterDescription) {
    state.withLock { if $0.endWait(for: id) { $0.silent.append(description) } }
    latch.raise()
  }

  /// Looks whether all have answered, or the moment has come.
  ///
  /// - Throws: what a presenter signalled.
  func step(until limit: ContinuousClock.Instant) throws -> WaitingStep<Void> {
    let now = ContinuousClock.now
    let (isOver, failure) = state.withLock { state in
      if now >= limit {
        state.silent += state.waiting.values
        state.waiting = [:]
      }
      return (state.waiting.isEmpty, state.failure)
    }
    if let failure { throw failure }
    return isOver
      ? .done(()) : .wait(for: latch, until: min(limit, now.advanced(by: Self.interval)))
  }
}
