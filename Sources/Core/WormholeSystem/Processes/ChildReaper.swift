import Synchronization

/// Reaps the programs that this process started and no longer waits for. A zombie would keep its
/// number taken, and would disturb code that waits for any child.
///
/// Its thread runs as long as there is such a program.
enum ChildReaper {
  private struct State {
    var orphans: [SharedDescriptor] = []
    var isRunning = false
    /// Raised when an orphan arrives; nil while the thread has yet to examine all of them.
    var wakeUp: SharedDescriptor?
  }

  private static let state = Mutex(State())

  /// Takes over a child, given its handle.
  static func take(_ child: SharedDescriptor) {
    let (mustStart, wakeUp) = state.withLock { state in
      state.orphans.append(child)
      return (!exchange(&state.isRunning, with: true), state.wakeUp)
    }
    do throws(Errno) {
      if mustStart { try startThread(name: "child-reaper", run) }
      try wakeUp?.descriptor.raiseCounter()
    } catch {
      // No thread or no descriptor is free; the next orphan tries again for all.
      if mustStart { stop() }
    }
  }

  private static func stop() {
    state.withLock { ($0.isRunning, $0.wakeUp) = (false, nil) }
  }

  private static func run() {
    do throws(Errno) {
      let wakeUp = SharedDescriptor(try FileDescriptor.wakeUpCounter())
      while let orphans = next(wakeUp) {
        let ready = try waitReadable(
          [wakeUp.descriptor.rawValue] + orphans.map { $0.descriptor.rawValue }, until: nil)
        try wakeUp.descriptor.lowerCounter()
        for (orphan, hasEnded) in zip(orphans, ready.dropFirst()) where hasEnded { reap(orphan) }
      }
    } catch {
      stop()
    }
  }

  /// Excludes: an orphan that arrives after the thread has seen none is never reaped.
  private static func next(_ wakeUp: SharedDescriptor) -> [SharedDescriptor]? {
    state.withLock { state in
      state.isRunning = !state.orphans.isEmpty
      state.wakeUp = state.isRunning ? wakeUp : nil
      return state.isRunning ? state.orphans : nil
    }
  }

  private static func reap(_ orphan: SharedDescriptor) {
    // If it fails, other code has already reaped it, which is enough.
    _ = try? ChildProcess.reap(orphan)
    state.withLock { $0.orphans.removeAll { $0 === orphan } }
  }
}
