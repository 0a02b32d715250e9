import AppGroup
import Synchronization

/// The questions of one access to the presenters of other processes at one site.
final class RemoteAsking: Sendable {
  private let site: PresenterSite
  private let asked: [PresenterSite.Member]
  private let answers: PresenterAnswers
  private let questions = Mutex<[PresenterSite.Question]>([])
  /// The presenters that were stopped at the last look.
  private let stopped: Mutex<Set<String>>

  /// - Returns: nil if the demands concern no presenter at the site.
  init?(_ demands: [PresenterDemand], at site: PresenterSite, _ answers: PresenterAnswers) {
    self.site = site
    self.answers = answers
    asked = site.others().filter {
      !PresenterStep.steps(for: demands, ofPresenterAt: $0.path, answering: $0.answered).isEmpty
    }
    stopped = Mutex(Set(asked.filter { $0.presence.state == .suspended }.map(\.id)))
    guard !asked.isEmpty else { return nil }
    for member in asked { answers.expect(member.id, member.description) }
  }

  /// Asks; the answers come as they come.
  func start(_ demands: [PresenterDemand]) {
    for member in asked {
      do {
        let question = try site.ask(member, demands) { [answers] in answers.take($0, of: member) }
        if let question { questions.withLock { $0.append(question) } }
      } catch {
        Diagnostics.report(error)
        answers.giveUp(member.id, member.description)
      }
    }
  }

  /// Looks at the presenters that have not answered: those that have left count as if they had, and
  /// those that were stopped at the last look already are not waited for any more.
  func look() {
    let waiting = answers.waiting
    let due = asked.filter { waiting.contains($0.id) }
    guard !due.isEmpty else { return }
    do {
      let living = try site.members()
      let before = stopped.withLock { $0 }
      var now: Set<String> = []
      for member in due {
        guard let member = living.first(where: { $0.id == member.id }) else {
          answers.take(member.id, .success(()))
          continue
        }
        guard member.presence.state == .suspended else { continue }
        now.insert(member.id)
        if before.contains(member.id) { answers.giveUp(member.id, member.description) }
      }
      let all = now
      stopped.withLock { $0 = all }
    } catch {
      // Perhaps no descriptor is left: the time limit ends the wait.
      return
    }
  }

  /// The access is over.
  func finish() {
    for question in questions.withLock({ $0 }) { site.release(question) }
  }
}

extension PresenterAnswers {
  fileprivate func take(_ end: CallEnd, of member: PresenterSite.Member) {
    switch end {
    case .answered(.reply), .died: take(member.id, .success(()))
    case .answered(.failure(code: PresenterSite.refusal, let reason)):
      take(member.id, .failure(PresenterError.refused(member.description, reason)))
    default: giveUp(member.id, member.description)
    }
  }
}
