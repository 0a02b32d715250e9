import Synchronization
import Wormhole
import WormholeSystem

/// Elements that arrive in order, for tests that wait for the next one.
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

  /// Takes the next one; nil if there is none: the latch is then raised at the next one.
  func take(orRaise latch: WakeLatch) -> Element? {
    state.withLock { state in
      guard state.taken < state.all.count else {
        if !state.waiting.contains(where: { $0 === latch }) { state.waiting.append(latch) }
        return nil
      }
      defer { state.taken += 1 }
      return state.all[state.taken]
    }
  }
}
