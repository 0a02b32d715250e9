package import Dispatch
import Synchronization

/// Calls closures at their moments, one after another, on one thread.
///
/// The dispatch library opens descriptors for the first timer of a process, and ends the process when
/// it gets none. This thread needs no descriptor.
package final class Timers: Sendable {
  private struct State {
    var timers = DueHeap<@Sendable () -> Void>()
    var hasThread = false
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
      return (state.timers.insert(body, due: moment), !state.hasThread)
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
      let (due, next) = state.withLock { state in
        (state.timers.takeFirst(dueAt: .now), state.timers.due)
      }
      guard let due else { return next }
      due()
    }
  }
}

extension DispatchQueue {
  /// Runs a closure after a pause.
  package func after(_ pause: Duration, _ body: @escaping @Sendable () -> Void) {
    Timers.after(pause) { [self] in async(execute: body) }
  }
}
