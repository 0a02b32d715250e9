import AppGroup
import Dispatch
import FileClaims
import Synchronization

/// Brings the questions of other processes' coordinators to this process's presenters, at one site.
///
/// The value of requests is watched, and what it holds now is what counts: a request that has gone
/// is over, whether or not its presenter has answered, so a process that was stopped meanwhile does
/// nothing that is out of date. A coordinator that dies is gone from its presence, and its requests
/// are over, too.
final class PresenterServer: Sendable {
  private struct Open {
    let coordinator: String
    var exchanges: [String: PresenterExchange] = [:]
  }

  private struct State {
    /// How many presenters are registered here.
    var presenters = 0
    var open: [String: Open] = [:]
    var observations: [Observation] = []
  }

  private let book: RequestBook
  private let coordinators: Presence
  private let state = Mutex(State())
  /// Looks at requests and writes answers, one after the other.
  private let queue = DispatchQueue(label: "wormhole.presenters")

  init(_ book: RequestBook, _ coordinators: Presence) {
    self.book = book
    self.coordinators = coordinators
  }

  var isServing: Bool { state.withLock { !$0.observations.isEmpty } }

  /// Begins to serve with the first presenter.
  func begin() throws {
    let isFirst = state.withLock { state in
      state.presenters += 1
      return state.observations.isEmpty
    }
    guard isFirst else { return }
    do {
      let requests = try book.value.observe(startsWithCurrent: true, on: queue) { [weak self] in
        self?.look(RequestBook.requests(in: $0))
      }
      let deaths = try coordinators.observe(startsWithCurrent: true, on: queue) { [weak self] in
        self?.endRequests(except: Set($0.map(\.id)))
      }
      state.withLock { $0.observations = [requests, deaths] }
    } catch {
      state.withLock { $0.presenters -= 1 }
      throw error
    }
  }

  /// Ends with the last presenter, as soon as no request to it is under way: the reacquirers that it has
  /// handed in must still be called.
  func end() {
    state.withLock { $0.presenters -= 1 }
    endIfIdle()
  }

  private func endIfIdle() {
    let ended = state.withLock { state -> [Observation] in
      guard state.presenters == 0, state.open.isEmpty else { return [] }
      defer { state.observations = [] }
      return state.observations
    }
    for observation in ended { observation.cancel() }
  }

  // MARK: What is under way

  private func look(_ requests: RequestBook.Requests) {
    finish { id, _ in requests[id] == nil }
    for (id, request) in requests {
      for (presenter, answer) in request.answers where answer == .asked {
        guard let registered = PresenterRegistry.shared.registered(presenter) else { continue }
        ask(registered, id, request)
      }
    }
    endIfIdle()
  }

  private func ask(_ presenter: RegisteredPresenter, _ id: String, _ request: PresenterRequest) {
    switch request.subject {
    case .moved(let old, let new):
      presenter.watcher.follow(from: ItemPath(old), to: ItemPath(new), isOwn: false)
      answer(id, presenter.id, .given)
    case .access(let demands):
      let exchange = PresenterExchange(presenter, presenter.steps(for: demands)) { [self] outcome in
        queue.async { self.answer(id, presenter.id, PresenterRequest.Answer(outcome)) }
      }
      let isNew = state.withLock { state in
        var open = state.open[id] ?? Open(coordinator: request.coordinator)
        guard open.exchanges[presenter.id] == nil else { return false }
        open.exchanges[presenter.id] = exchange
        state.open[id] = open
        return true
      }
      guard isNew, isLiving(request.coordinator, id) else { return }
      exchange.start()
    }
  }

  // It was present before it asked, so if it is not now, it is dead. Those that die from now on the
  // observation tells of.
  private func isLiving(_ coordinator: String, _ id: String) -> Bool {
    do {
      let living = try coordinators.members()
      if living.contains(where: { $0.id == coordinator }) { return true }
      endRequests(except: Set(living.map(\.id)))
      return false
    } catch {
      // Perhaps no descriptor is left: an unnecessary question does less harm.
      return true
    }
  }

  private func answer(_ id: String, _ presenter: String, _ answer: PresenterRequest.Answer) {
    do {
      try book.answer(id, presenter, answer)
    } catch {
      // The access that waits for the answer goes on without it after a time.
      Diagnostics.report(error)
    }
  }

  private func endRequests(except living: Set<String>) {
    for id in finish(where: { _, coordinator in !living.contains(coordinator) }) {
      do {
        try book.remove(id)
      } catch {
        // Another process will, or the next coordinator: the request is known to be over.
        continue
      }
    }
    endIfIdle()
  }

  @discardableResult
  private func finish(where isOver: (String, String) -> Bool) -> [String] {
    let over = state.withLock { state in
      let over = state.open.filter { isOver($0.key, $0.value.coordinator) }
      for id in over.keys { state.open[id] = nil }
      return over
    }
    for open in over.values {
      for exchange in open.exchanges.values { exchange.finish() }
    }
    return Array(over.keys)
  }
}

extension PresenterRequest.Answer {
  init(_ outcome: PresenterExchange.Outcome) {
    switch outcome {
    case .success: self = .given
    case .failure(let error): self = .refused("\(error)")
    }
  }
}
