import Synchronization
import Wormhole
import WormholeSystem

/// Elements that arrive in an order, for tests that wait for the next one.
final class Arrivals<Element: Sendable>: Sendable {
  private struct State {
    var all: [Element] = []
    /// How many of them were taken by `next`.
    var taken = 0
    var waiting: [WakeLatch] = []
  }

  private let state = Mutex(State())

  /// All elements that arrived, in order.
  var all: [Element] { state.withLock { $0.all } }

  func add(_ element: Element) {
    let waiting = state.withLock { state in
      state.all.append(element)
      defer { state.waiting = [] }
      return state.waiting
    }
    for latch in waiting { latch.raise() }
  }

  /// Takes the next one.
  ///
  /// - Returns: the element; nil, after the latch was noted, if there is none yet.
  fileprivate func take(orRaise latch: WakeLatch) -> Element? {
    state.withLock { state in
      guard state.taken < state.all.count else {
        if !state.waiting.contains(where: { $0 === latch }) { state.waiting.append(latch) }
        return nil
      }
      defer { state.taken += 1 }
      return state.all[state.taken]
    }
  }

  fileprivate func leave(_ latch: WakeLatch) {
    state.withLock { $0.waiting.removeAll { $0 === latch } }
  }
}

/// One caller's wait for the next element.
final class NextArrival<Element: Sendable>: Waiting {
  private let arrivals: Arrivals<Element>
  private let deadline: ContinuousClock.Instant
  private let late: @Sendable () -> TestingError
  private let latch = WakeLatch()

  /// - Parameter late: the error for a deadline that has passed.
  init(
    of arrivals: Arrivals<Element>, until deadline: ContinuousClock.Instant?,
    _ late: @escaping @Sendable () -> TestingError
  ) {
    self.arrivals = arrivals
    self.deadline = deadline ?? .now + TestScene.patience
    self.late = late
  }

  deinit { arrivals.leave(latch) }

  func step() throws -> WaitingStep<Element> {
    if let element = arrivals.take(orRaise: latch) { return .done(element) }
    guard ContinuousClock.now < deadline else { throw late() }
    return .wait(for: latch, until: deadline)
  }
}
