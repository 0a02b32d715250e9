import AppGroup
import Dispatch
import FileClaims
import Synchronization

/// The questions of one access to the presenters of other processes at one site.
final class RemoteAsking: Sendable {
  private struct State {
    /// The presenters that were stopped at the last look.
    var stopped: Set<String> = []
    var observation: Observation?
    var isAsked = false
  }

  private let site: PresenterSite
  private let asked: [PresenterSite.Member]
  private let answers: PresenterAnswers
  private let id = String(UInt64.random(in: .min ... .max), radix: 16)
  private let state = Mutex(State())

  private init(
    _ site: PresenterSite, _ asked: [PresenterSite.Member], _ answers: PresenterAnswers
  ) {
    self.site = site
    self.asked = asked
    self.answers = answers
  }

  /// The presenters that the demands concern, for each site that has any.
  static func concerned(
    by demands: [PresenterDemand], _ answers: PresenterAnswers
  ) -> [RemoteAsking] {
    let sites = PresenterSites.asking(demands.map { ItemPath($0.path) })
    return sites.compactMap { site in
      let asked = others(at: site).filter {
        !PresenterStep.steps(for: demands, ofPresenterAt: $0.path, answering: $0.answered).isEmpty
      }
      guard !asked.isEmpty else { return nil }
      for member in asked { answers.expect(member.id, member.description) }
      let stopped = asked.filter { $0.presence.state == .suspended }.map(\.id)
      let asking = RemoteAsking(site, asked, answers)
      asking.state.withLock { $0.stopped = Set(stopped) }
      return asking
    }
  }

  /// Presenters of other processes; none when that cannot be found out.
  static func others(at site: PresenterSite) -> [PresenterSite.Member] {
    do {
      return try site.members().filter { !$0.presence.isOwnProcess }
    } catch {
      // An access is worth more than the presenters of a container that is damaged or full.
      Diagnostics.report(error)
      return []
    }
  }

  /// Asks; the answers come as they come.
  func start(_ demands: [PresenterDemand]) {
    do {
      let request = PresenterRequest(
        coordinator: try site.coordinatorID(), subject: .access(demands),
        answers: Dictionary(asked.map { ($0.id, .asked) }) { first, _ in first })
      // Watched first: no answer is missed.
      let observation = try site.book.value.observe(on: DispatchQueue(label: "wormhole.asking")) {
        [weak self] in self?.take(RequestBook.requests(in: $0))
      }
      state.withLock { state in
        state.observation = observation
        state.isAsked = true
      }
      try site.add(request, id, until: .now + PresenterConversation.patience)
    } catch {
      Diagnostics.report(error)
      for member in asked { answers.giveUp(member.id, member.description) }
    }
  }

  private func take(_ requests: RequestBook.Requests) {
    guard let request = requests[id] else { return }
    for member in asked {
      switch request.answers[member.id] {
      case .given: answers.take(member.id, .success(()))
      case .refused(let reason):
        answers.take(member.id, .failure(PresenterError.refused(member.description, reason)))
      case .asked, nil: continue
      }
    }
  }

  /// Looks at the presenters that have not answered: dead ones count as if they had, and those that were
  /// stopped at the last look already are not waited for any more.
  func look() {
    let waiting = answers.waiting
    let due = asked.filter { waiting.contains($0.id) }
    guard !due.isEmpty else { return }
    do {
      let living = try site.members()
      var stopped: Set<String> = []
      for member in due {
        guard let now = living.first(where: { $0.id == member.id }) else {
          answers.take(member.id, .success(()))
          continue
        }
        guard now.presence.state == .suspended else { continue }
        stopped.insert(member.id)
        let wasStopped = state.withLock { $0.stopped.contains(member.id) }
        if wasStopped { answers.giveUp(member.id, now.description) }
      }
      let all = stopped
      state.withLock { $0.stopped = all }
    } catch {
      // Perhaps no descriptor is left: the time limit ends the wait.
      return
    }
  }

  /// The access is over; the presenters hear of it by the request's being gone.
  func finish() {
    let (observation, isAsked) = state.withLock { state in
      defer {
        state.observation = nil
        state.isAsked = false
      }
      return (state.observation, state.isAsked)
    }
    observation?.cancel()
    guard isAsked else { return }
    do {
      try site.book.remove(id)
    } catch {
      // Until it is removed with this process's death, they believe that the access goes on.
      Diagnostics.report(error)
    }
  }
}

extension PresenterSite {
  /// Adds a request, and removes the requests of dead coordinators.
  func add(
    _ request: PresenterRequest, _ id: String, until deadline: ContinuousClock.Instant
  ) throws {
    let old = try book.requests()
    // A coordinator enters its presence before it asks. So one that asked before this look and is not
    // present after it is dead.
    let coordinators = old.isEmpty ? [] : Set(try coordinators.members().map(\.id))
    let presenters = old.isEmpty ? [] : Set(try members().map(\.id))
    let dead = old.filter { _, request in
      switch request.subject {
      case .access: !coordinators.contains(request.coordinator)
      case .moved: presenters.isDisjoint(with: request.answers.keys)
      }
    }
    try book.change(until: deadline) { requests in
      for id in dead.keys { requests[id] = nil }
      requests[id] = request
    }
  }
}
