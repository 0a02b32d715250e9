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

  /// Takes the next one, and waits for it if there is none; blocks the calling thread.
  ///
  /// - Returns: nil when the deadline has passed.
  func next(until deadline: ContinuousClock.Instant) -> Element? {
    let latch = WakeLatch()
    defer { state.withLock { $0.waiting.removeAll { $0 === latch } } }
    while true {
      let element = state.withLock { state -> Element? in
        guard state.taken < state.all.count else {
          state.waiting.append(latch)
          return nil
        }
        defer { state.taken += 1 }
        return state.all[state.taken]
      }
      if let element { return element }
      guard ContinuousClock.now < deadline else { return nil }
      latch.block(until: deadline)
    }
  }
}
