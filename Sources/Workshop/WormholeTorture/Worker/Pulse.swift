import Synchronization
import WormholeSystem

/// A thread that ticks, by which a process knows afterwards how long none of its threads ran: it
/// was stopped, or the machine gave it no time. Calls are not blamed for that.
enum Pulse {
  private struct State {
    var last = bootTimeNanoseconds()
    var missed: UInt64 = 0
  }

  private static let state = Mutex(State())
  private static let interval: Duration = .milliseconds(10)
  /// A longer pause between two ticks is one of the whole process.
  private static let shortest: UInt64 = 100_000_000

  static func begin() throws(Errno) {
    state.withLock { $0.last = bootTimeNanoseconds() }
    try startThread(name: "pulse") {
      while true {
        pauseThread(interval)
        state.withLock { state in
          let now = bootTimeNanoseconds()
          state.missed += pause(state, now)
          state.last = now
        }
      }
    }
  }

  private static func pause(_ state: State, _ now: UInt64) -> UInt64 {
    let pause = now - state.last
    return pause > shortest ? pause : 0
  }

  /// How long the process did not run, until now; in nanoseconds. Another thread may continue
  /// earlier than the ticking one, so the current pause counts as well.
  static func missed(at now: UInt64) -> UInt64 {
    state.withLock { $0.missed + (now > $0.last ? pause($0, now) : 0) }
  }
}

/// Measures the duration of an operation while the process runs.
struct Stopwatch {
  private let beginning = bootTimeNanoseconds()
  private let missed: UInt64

  init() { missed = Pulse.missed(at: beginning) }

  var elapsed: Duration {
    let now = bootTimeNanoseconds()
    let pause = Pulse.missed(at: now) - missed
    return .nanoseconds(Int64(clamping: now - beginning) - Int64(clamping: pause))
  }
}
