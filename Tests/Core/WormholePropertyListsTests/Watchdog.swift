import Foundation
import Synchronization

/// Records inputs that take more than a second of their thread's processor time, and stops the
/// process with the input in its last message if one seems to take for ever.
///
/// It measures processor time, so that other work of the machine makes no difference.
final class Watchdog: Sendable {
  private struct State {
    var file: [UInt8]?
    var began = Duration.zero
    var slowest = Duration.zero
    var overruns: [[UInt8]] = []
    var isOver = false
  }

  private static let limit = Duration.seconds(1)
  private static let hang = Duration.seconds(30)

  private let state = Mutex(State())
  private let clock: clockid_t

  /// Watches the thread that creates it.
  init() {
    var clock = clockid_t()
    let result = pthread_getcpuclockid(pthread_self(), &clock)
    precondition(result == 0, "a thread has a clock of its processor time")
    self.clock = clock
    Thread { [self] in
      // No test waits for this: it only decides how soon a hang ends the run.
      while !look() { Thread.sleep(forTimeInterval: 0.2) }
    }.start()
  }

  var slowestMicroseconds: Int64 {
    state.withLock { $0.slowest.components.attoseconds / 1_000_000_000_000 }
  }

  /// The inputs that took too long.
  var overruns: [[UInt8]] { state.withLock { $0.overruns } }

  func begin(_ file: [UInt8]) {
    let now = processorTime()
    state.withLock {
      $0.file = file
      $0.began = now
    }
  }

  func end() {
    let now = processorTime()
    state.withLock {
      $0.slowest = max($0.slowest, now - $0.began)
      if let file = $0.file, now - $0.began > Self.limit { $0.overruns.append(file) }
      $0.file = nil
    }
  }

  func stop() {
    state.withLock { $0.isOver = true }
  }

  /// Returns whether the watch is over.
  private func look() -> Bool {
    state.withLock {
      if $0.isOver { return true }
      if let file = $0.file, processorTime() - $0.began > Self.hang {
        // The hanging thread cannot fail by itself, and the input must not be lost with it.
        fatalError("an input hangs: \(hex(file))")
      }
      return false
    }
  }

  private func processorTime() -> Duration {
    var time = timespec()
    clock_gettime(clock, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}
