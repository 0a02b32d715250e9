package import Dispatch
import Synchronization

/// Calls closures at their moments, one after another, on one thread.
///
/// The dispatch library opens descriptors for the first timer of a process, and ends the process when
/// it gets none. This thread needs no descriptor.
package final class Timers: Sendable {
  private struct Timer: Sendable {
    let moment: ContinuousClock.Instant
    let body: @Sendable () -> Void
  }

  private struct State {
    /// A heap: each timer is due no later than the two below it, at twice its place plus 1 and 2.
    var timers: [Timer] = []
    var hasThread = false

    /// - Returns: Whether it is the first.
    mutating func insert(_ timer: Timer) -> Bool {
      timers.append(timer)
      var place = timers.count - 1
      while place > 0, timer.moment < timers[(place - 1) / 2].moment {
        timers.swapAt(place, (place - 1) / 2)
        place = (place - 1) / 2
      }
      return place == 0
    }

    mutating func takeFirst() -> Timer {
      timers.swapAt(0, timers.count - 1)
      let first = timers.removeLast()
      var place = 0
      while true {
        let below = (2 * place + 1...2 * place + 2).prefix { $0 < timers.count }
        guard let soonest = below.min(by: { timers[$0].moment < timers[$1].moment }),
          timers[soonest].moment < timers[place].moment
        else { return first }
        timers.swapAt(place, soonest)
        place = soonest
      }
    }
  }

  private static let shared = Timers()

  private let state = Mutex(State())
  private let latch = WakeLatch()

  /// Calls a closure after a pause.
  ///
  /// - Parameter body: It must be short, because all timers of the process wait for it.
  package static func after(_ pause: Duration, _ body: @escaping @Sendable () -> Void) {
    shared.call(at: .now + min(pause, longest), body)
  }

  /// A century is long enough, and does not overflow.
  private static let longest = Duration.seconds(3_155_760_000)

  func call(at moment: ContinuousClock.Instant, _ body: @escaping @Sendable () -> Void) {
    let (isNext, mustStart) = state.withLock { state in
      defer { state.hasThread = true }
      return (state.insert(Timer(moment: moment, body: body)), !state.hasThread)
    }
    if mustStart { start() } else if isNext { latch.raise() }
  }

  private func start() {
    do throws(Errno) {
      try startThread(name: "wormhole.timers") { [self] in
        while true { latch.block(until: callDue()) }
      }
      Self.isStalled.store(false, ordering: .releasing)
    } catch {
      // The next timer, and each thread that waits, tries again.
      state.withLock { $0.hasThread = false }
      Self.isStalled.store(true, ordering: .releasing)
    }
  }

  // MARK: Without a thread

  /// Whether the thread could not be started. Then each waiting thread calls the timers, so a wait
  /// must not last longer than `stalledWait`.
  static var areStalled: Bool { isStalled.load(ordering: .acquiring) }
  private static let isStalled = Atomic(false)
  static let stalledWait: Duration = .milliseconds(200)

  /// Calls the timers that are due, after a wait without their thread, and tries to start it.
  static func callStalled() {
    let mustStart = shared.state.withLock { state in !exchange(&state.hasThread, with: true) }
    guard mustStart else { return }
    shared.start()
    if areStalled { _ = shared.callDue() }
  }

  /// - Returns: The moment of the next timer; nil if there is none.
  private func callDue() -> ContinuousClock.Instant? {
    while true {
      let (due, next) = state.withLock { state -> (Timer?, ContinuousClock.Instant?) in
        guard let first = state.timers.first else { return (nil, nil) }
        return first.moment <= .now ? (state.takeFirst(), nil) : (nil, first.moment)
      }
      guard let due else { return next }
      due.body()
    }
  }
}

extension DispatchQueue {
  /// Runs a closure after a pause.
  package func after(_ pause: Duration, _ body: @escaping @Sendable () -> Void) {
    Timers.after(pause) { [self] in async(execute: body) }
  }
}
