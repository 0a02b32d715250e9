package import Dispatch
import Synchronization

/// Runs closures one after another, on threads that may block: a serial queue for this package's
/// own work, which never makes its caller wait for a thread.
package final class BlockingQueue: Sendable {
  private enum Waiter: Sendable {
    case body(@Sendable () -> Void)
    /// A thread waits for it, and runs its closure itself.
    case caller(ThreadSemaphore)
  }

  private struct State {
    var isBusy = false
    var waiters: ArraySlice<Waiter> = []
  }

  private let state = Mutex(State())

  /// Runs a closure after those before it. Without a thread now, it runs as soon as there is one.
  package func async(execute body: @escaping @Sendable () -> Void) {
    if isFree(or: .body(body)) { start(body) }
  }

  /// - Parameter group: Entered until the closure has ended.
  package func async(group: DispatchGroup, execute body: @escaping @Sendable () -> Void) {
    group.enter()
    async {
      body()
      group.leave()
    }
  }

  /// Runs a closure after a pause.
  package func after(_ pause: Duration, _ body: @escaping @Sendable () -> Void) {
    Timers.after(pause) { [self] in async(execute: body) }
  }

  /// Runs a closure on the calling thread, after those before it.
  package func sync<Result>(_ body: () throws -> Result) rethrows -> Result {
    let semaphore = ThreadSemaphore()
    if !isFree(or: .caller(semaphore)) { _ = semaphore.wait(until: nil) }
    defer { passOn() }
    return try body()
  }

  /// Takes the queue if it is free, or else waits in line.
  private func isFree(or waiter: Waiter) -> Bool {
    state.withLock { state in
      if state.isBusy { state.waiters.append(waiter) }
      return !exchange(&state.isBusy, with: true)
    }
  }

  private func passOn() {
    switch next() {
    case .body(let body): start(body)
    case .caller(let semaphore): semaphore.signal()
    case nil: return
    }
  }

  private func next() -> Waiter? {
    state.withLock { state in
      state.isBusy = !state.waiters.isEmpty
      return state.waiters.popFirst()
    }
  }

  private func start(_ first: @escaping @Sendable () -> Void) {
    let run: @Sendable () -> Void = { [self] in
      first()
      while let waiter = next() {
        switch waiter {
        case .body(let body): body()
        case .caller(let semaphore): return semaphore.signal()
        }
      }
    }
    do throws(ThreadShortage) { try Blocking.start(run) } catch { Blocking.retry(run) }
  }
}
