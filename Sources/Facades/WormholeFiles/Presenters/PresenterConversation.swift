import Synchronization
package import Wormhole
package import WormholeSystem
import WormholeToolkit

/// One access as presenters see it: they are asked before it begins, and notified of its end.
///
/// Nothing is locked while they are asked, so a presenter may itself coordinate in a callback. A
/// presenter that leaves or dies while it is asked counts as having answered; one that does not
/// answer is named.
package final class PresenterConversation: Waiting, Sendable {
  /// How long all presenters together may take.
  static let patience: Duration = .seconds(2)

  /// How long an access that does not wait for other processes waits for one presenter whose
  /// process may be stopped, as far as can be seen from here.
  package static let briefPatience: Duration = .milliseconds(200)

  /// The presenters that did not answer in time, in their state at the last look.
  package var silent: [PresenterDescription] { state.withLock { $0.silent } }

  private struct State {
    /// The presenters that have not answered.
    var waiting: [String: PresenterDescription] = [:]
    var silent: [PresenterDescription] = []
    /// Presenters of other processes that were stopped at the last look.
    var stopped: Set<String>
    /// Each gives a presenter its item back.
    var releases: [@Sendable () -> Void] = []
    var failure: (any Error)?
    /// The presenter whose callback waits for the access.
    var caller: RegisteredPresenter?
    /// The limit of the wait for answers.
    var limit: ContinuousClock.Instant
    /// The same for a presenter whose process cannot be seen.
    var unseenLimit: ContinuousClock.Instant?
    var isAsked = false
    var hasAnswers = false
    var isOver = false
  }

  private let demands: [PresenterDemand]
  private let terms: AccessTerms?
  /// The presenters of other processes that the demands concern.
  private let remote: [PresenterSite.Member]
  private let own: RegisteredPresenter?
  /// How long to wait for a presenter whose process cannot be seen.
  private let unseenPatience: Duration
  private let latch = WakeLatch()
  private let state: Mutex<State>

  /// The questions for presenters; none is asked before the first step.
  ///
  /// - Parameters:
  ///   - presenter: the coordinator's own presenter, which is not notified of its accesses.
  ///   - terms: the access, which may be cancelled meanwhile.
  private init(
    _ demands: [PresenterDemand], _ remote: [PresenterSite.Member],
    for presenter: (any FilePresenter)?, until deadline: ContinuousClock.Instant,
    under terms: AccessTerms?, unseen: Duration = patience
  ) {
    unseenPatience = unseen
    self.demands = demands
    self.terms = terms
    self.remote = remote
    let stopped = remote.filter { $0.presence.state == .suspended }
    state = Mutex(State(stopped: Set(stopped.map(\.id)), limit: deadline))
    own = presenter.flatMap { RegisteredPresenter.registered($0) }
    own?.watcher.pause()
  }

  deinit { finish(published: [:]) }

  /// - Returns: nil if no presenter is to be asked, and none of the caller's is to be notified.
  /// - Complexity: as `begin` without presenters.
  static func ifNeeded(
    _ demands: [PresenterDemand], for presenter: (any FilePresenter)?, under terms: AccessTerms
  ) -> PresenterConversation? {
    guard !demands.isEmpty || presenter != nil else { return nil }
    let remote = remote(for: demands)
    guard presenter != nil || !remote.isEmpty || !RegisteredPresenter.areNone else { return nil }
    return PresenterConversation(
      demands, remote, for: presenter, until: terms.deadline, under: terms)
  }

  /// Asks all presenters concerned, in this process and in others, and waits for their answers, for
  /// at most `patience` and not beyond the deadline.
  ///
  /// - Throws: a presenter's error; then the access must not begin.
  /// - Complexity: without presenters, a look for containers above the items, and one at the
  ///   present processes in each.
  package static func begin(
    _ demands: [PresenterDemand], for presenter: (any FilePresenter)?,
    until deadline: ContinuousClock.Instant, under terms: AccessTerms? = nil,
    unseen: Duration = patience
  ) throws -> PresenterConversation {
    let conversation = PresenterConversation(
      demands, remote(for: demands), for: presenter, until: deadline, under: terms, unseen: unseen)
    try conversation.run()
    conversation.accessBegins()
    return conversation
  }

  /// Asks, or looks for answers; see `begin`. A conversation that throws is over.
  package func step() throws -> WaitingStep<Void> {
    let (isAsked, isDone) = state.withLock { ($0.isAsked, $0.hasAnswers) }
    guard !isDone else { return .done(()) }
    do {
      try terms?.check("ask the presenters", path: demands.first?.path.text ?? "")
    } catch {
      finish(published: [:])
      throw error
    }
    if isAsked { lookAtRemote() } else { ask() }
    let now = ContinuousClock.now
    let (limit, failure) = state.withLock { state in
      if now >= state.limit {
        state.silent += state.waiting.values
        state.waiting = [:]
      }
      state.hasAnswers = state.waiting.isEmpty && state.failure == nil
      return (state.hasAnswers ? nil : state.limit, state.failure)
    }
    if let failure {
      finish(published: [:])
      throw failure
    }
    if let limit { return .wait(for: latch, until: min(limit, now + AccessTerms.interval)) }
    if !silent.isEmpty {
      let names = silent.map(\.description).joined(separator: "; ")
      let sentence = "went on without an answer of \(names); it may not notice in time"
      Diagnostics.report(PresenterError(description: sentence))
    }
    return .done(())
  }

  private func ask() {
    let caller = RegisteredPresenter.all.first { $0.callbacks.isCalling }
    caller?.beginWait()
    let isInCallback = caller != nil
    let exchanges = RegisteredPresenter.all.compactMap {
      exchange(with: $0, isForCallback: isInCallback)
    }
    state.withLock { state in
      for member in remote { state.waiting[member.id] = member.description }
      state.caller = caller
      state.isAsked = true
    }
    for member in remote {
      // Only what concerns it: an access may involve thousands of items.
      let release = member.site.ask(
        member, about: demands.filter { Self.concerns(member.path, member.answered, [$0]) },
        isForCallback: isInCallback
      ) { [weak self] in self?.take($0, of: member) }
      if let release { state.withLock { $0.releases.append(release) } }
    }
    for exchange in exchanges {
      state.withLock { $0.releases.append { exchange.finish() } }
      exchange.start()
    }
    state.withLock { state in
      state.limit = min(state.limit, .now.advanced(by: Self.patience))
      state.unseenLimit = .now.advanced(by: unseenPatience)
    }
  }

  /// The accessor runs, or never will.
  func accessBegins() { state.withLock { $0.caller.take() }?.endWait() }

  /// - Returns: nil if the demands do not concern the presenter.
  private func exchange(
    with presenter: RegisteredPresenter, isForCallback: Bool
  ) -> PresenterExchange? {
    guard presenter !== own, let path = presenter.path else { return nil }
    let steps = presenter.steps(for: demands)
    guard !steps.isEmpty else { return nil }
    let id = presenter.id
    let description = PresenterDescription(
      processID: Program.processID, program: "this program", state: .running, path: path.text)
    state.withLock { $0.waiting[id] = description }
    return PresenterExchange(presenter, steps, isForCallback: isForCallback) { [weak self] in
      self?.endWait(for: id, failure: $0)
    }
  }

  // MARK: Presenters of other processes

  private static func remote(for demands: [PresenterDemand]) -> [PresenterSite.Member] {
    PresenterSite.asking(demands.map(\.path)).flatMap { site in
      site.others { concerns($0, $1, demands) }
    }
  }

  private static func concerns(
    _ path: ItemPath, _ answered: AnsweredSteps, _ demands: [PresenterDemand]
  ) -> Bool {
    !PresenterStep.steps(for: demands, ofPresenterAt: path, answering: answered).isEmpty
  }

  /// Whether to ask other processes' presenters in these containers before an item is read.
  static func mustAsk(
    in containers: [ItemPath], beforeReading item: ItemPath, _ kind: AccessKind
  ) -> Bool {
    let demand = PresenterDemand(path: item, kind: kind)
    return !PresenterSite.opened(containers).allSatisfy { site in
      site.others { concerns($0, $1, [demand]) }.isEmpty
    }
  }

  /// Looks at the presenters that have not answered: one that has left counts as having answered,
  /// and one that was already stopped at the last look is no longer waited for.
  private func lookAtRemote() {
    let due = state.withLock { state in remote.filter { state.waiting[$0.id] != nil } }
    for members in Dictionary(grouping: due, by: { ObjectIdentifier($0.site) }).values {
      // It may fail because no descriptor is left: the time limit ends the wait.
      guard let present = try? members[0].site.members() else { continue }
      for id in members.map(\.id) {
        guard let member = present.first(where: { $0.id == id }) else {
          endWait(for: id)
          continue
        }
        if member.presence.state == .unknown, state.withLock(\.unseenLimit).hasPassed {
          endWait(for: id, silent: member.description)
          continue
        }
        let isStopped = member.presence.state == .suspended
        let last = state.withLock {
          isStopped ? $0.stopped.update(with: id) : $0.stopped.remove(id)
        }
        if isStopped, last != nil { endWait(for: id, silent: member.description) }
      }
    }
  }

  // MARK: Answers

  private func take(_ end: CallEnd, of member: PresenterSite.Member) {
    switch end {
    case .answered(.reply), .died: endWait(for: member.id)
    case .answered(.failure(code: PresenterSite.refusal, let reason, let details)):
      let sentence = "cannot begin the access: \(member.description) refused: \(reason)"
      endWait(
        for: member.id,
        failure: PresenterError(description: sentence, refusal: PresenterRefusal(details)))
    default: endWait(for: member.id, silent: member.description)
    }
  }

  /// - Parameter silent: the presenter, if the access continues without its answer.
  private func endWait(
    for id: String, failure: (any Error)? = nil, silent: PresenterDescription? = nil
  ) {
    state.withLock { state in
      guard state.waiting.removeValue(forKey: id) != nil else { return }
      if let silent { state.silent.append(silent) }
      state.failure = state.failure ?? failure
    }
    latch.raise()
  }

  /// The access is over: reacquirers are called, and the coordinator's own presenter is watched again.
  ///
  /// - Parameter published: the publications at each path, nil for a removed item. The own
  ///   presenter is not notified of them, nor of demands carried out in place: that an item is gone
  ///   after it was to be deleted or moved, or has other attributes.
  package func finish(published: [ItemPath: FileStatus?]) {
    let releases = state.withLock { state in
      Swift.exchange(&state.isOver, with: true) ? nil : state.releases
    }
    accessBegins()
    guard let releases else { return }
    for release in releases { release() }
    guard let own else { return }
    var published = published
    let inPlace = demands.filter { [.deleting, .moving].contains($0.kind) }
    for path in inPlace.map(\.path)
    where published[path] == nil && statusIfVisible(path.text) == nil {
      published[path] = .some(nil)
    }
    let attributes = demands.filter { $0.kind == .metadata }.map(\.path)
    own.watcher.resume(published: published, attributes: attributes)
    // The access itself is done; after an error its presenter stays known as before.
    Diagnostics.reporting { try own.presentItem() }
  }
}

extension PresenterConversation {
  /// Notifies the presenters of the item and of its contents of their new places, and those of
  /// directories above that an item in them was moved; the mover's own presenter knows.
  package static func reportMove(
    from old: String, to new: String, by presenter: (any FilePresenter)?
  ) {
    // If a directory above may not be looked at, the path as written is still the place.
    let place = { (try? ItemPath.canonical($0, followingLink: false)) ?? ItemPath($0) }
    let (from, to) = (place(old), place(new))
    guard from != to else { return }
    let own = presenter.flatMap { RegisteredPresenter.registered($0) }
    for presenter in RegisteredPresenter.all where presenter.path != nil {
      presenter.watcher.follow(from: from, to: to, isOwn: presenter === own)
    }
    for site in PresenterSite.asking([from]) {
      let members = site.others { path, _ in
        path == from || from.contains(path) || path.contains(from)
      }
      for member in members { site.reportMove(member, from: from, to: to) }
    }
  }
}

extension KeptCopies {
  /// Notifies the presenters of the item and of the directories above, in all processes.
  package func report(_ event: Event, _ copy: String) {
    for presenter in RegisteredPresenter.all { presenter.hear(event, ItemPath(copy), of: item) }
    for site in PresenterSite.asking([item]) {
      for member in site.others({ path, _ in path == item || path.contains(item) }) {
        site.report(event, copy, of: item, to: member)
      }
    }
  }
}

/// Why presenters could not be asked, or the error of one of them; a sentence.
package struct PresenterError: Error, Sendable, CustomStringConvertible {
  package let description: String
  /// The error of a presenter in another process.
  package var refusal: PresenterRefusal?
  /// Why this process cannot present an item.
  package var underlying: (any Error)?
}

/// A presenter that did not answer, and the state of its process.
package struct PresenterDescription: Sendable, Hashable, CustomStringConvertible {
  package let processID: Int32
  package let program: String
  package let state: PresenceMember.State
  package let path: String

  /// "the presenter of /a/b in process 4711 (editor), suspended".
  package var description: String {
    "the presenter of \(path) in process \(processID) (\(program)), \(state.rawValue)"
  }
}
