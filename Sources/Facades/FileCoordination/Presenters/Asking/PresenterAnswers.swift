import AppGroup
import Synchronization

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
