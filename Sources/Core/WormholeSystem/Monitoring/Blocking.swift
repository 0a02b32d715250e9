import Dispatch
import Synchronization

/// The threads for a task's calls that may block. The cooperative pool has as many threads as the
/// machine has cores, and two blocked calls there stop every task of the process.
///
/// They are not the dispatch library's: if no thread can be created, that library sleeps on its
/// caller's thread until one can, and it ends the process if its first thread gets no descriptor.
package enum Blocking {
  private static let threads = BlockingThreads()
  private static let urgentThreads = BlockingThreads(most: nil)

  package static func queue() -> BlockingQueue { BlockingQueue() }

  /// Starts the dispatch library's first thread after two seconds, once per process, for handlers
  /// on that library's queues. The library opens descriptors for that thread: early enough to have
  /// them at the end of a long wait, but not for a command that has ended by then.
  package static func beginDispatchSoon() { _ = begins }

  // On its own thread, which sleeps if the library gets none.
  private static let begins: Void = Timers.after(.seconds(2)) {
    urgently { DispatchQueue.global().async {} }
  }

  /// Runs a closure on a thread with nothing else to do. It never waits for the process's other
  /// calls, even while 255 of them block. Without a thread now, it runs as soon as there is one.
  package static func urgently(_ body: @escaping @Sendable () -> Void) {
    do throws(ThreadShortage) {
      try urgentThreads.start(body)
    } catch {
      retry(body)
    }
  }

  /// Runs a closure at the monitor's next poll, after a failure that may pass.
  package static func retry(_ body: @escaping @Sendable () -> Void) {
    Timers.after(ChangeMonitor.pollInterval) { urgently(body) }
  }

  /// Runs a call on a thread that may block.
  ///
  /// - Throws: What the call throws, or `ThreadShortage` if there is no thread for it.
  package static func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      do throws(ThreadShortage) {
        try start { continuation.resume(with: Swift.Result { try body() }) }
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }

  /// Runs a closure on a thread that may block, at once unless 255 calls block.
  static func start(_ body: @escaping @Sendable () -> Void) throws(ThreadShortage) {
    try threads.start(body)
  }
}

/// Threads that take one call after another. One that has had none for some seconds ends.
final class BlockingThreads: Sendable {
  typealias Body = @Sendable () -> Void

  /// A thread, or one that is being started.
  private final class Worker: Sendable {
    let next: Mutex<Body?>
    let semaphore = ThreadSemaphore()

    init(_ body: @escaping Body) { next = Mutex(body) }
  }

  private struct State {
    /// The threads without a call, the one with the latest call last.
    var idle: [Worker] = []
    var count = 0
    var waiting: ArraySlice<Body> = []
  }

  private let most: Int?
  private static let patience: Duration = .seconds(5)

  private let state = Mutex(State())

  /// - Parameter most: The largest number of threads, for which further calls wait; nil for a
  ///   thread per call, and then a call without one fails.
  init(most: Int? = 255) { self.most = most }

  func start(_ body: @escaping Body) throws(ThreadShortage) {
    let mustStart = state.withLock { state in
      if let worker = state.idle.popLast() {
        worker.next.withLock { $0 = body }
        worker.semaphore.signal()
        return false
      }
      guard state.count < most ?? .max else {
        state.waiting.append(body)
        return false
      }
      state.count += 1
      return true
    }
    guard mustStart else { return }
    let worker = Worker(body)
    do throws(Errno) {
      try startThread(name: "wormhole.calls") { [self] in run(worker) }
    } catch {
      guard most != nil else {
        state.withLock { $0.count -= 1 }
        throw ThreadShortage(error: error)
      }
      guard !wait(withoutThreadFor: body) else { return }
      throw ThreadShortage(error: error)
    }
  }

  /// Lets a call wait for one of the existing threads.
  ///
  /// - Returns: False if there is none.
  private func wait(withoutThreadFor body: @escaping Body) -> Bool {
    let (isWaiting, unserved) = state.withLock { state -> (Bool, ArraySlice<Body>) in
      state.count -= 1
      guard state.count == 0 else {
        state.waiting.append(body)
        return (true, [])
      }
      // The calls that waited for threads that could not be started either.
      return (false, exchange(&state.waiting, with: []))
    }
    unserved.forEach(Blocking.retry)
    return isWaiting
  }

  private func run(_ worker: Worker) {
    while let body = worker.next.withLock({ $0.take() }) ?? next(for: worker) { body() }
  }

  private func next(for worker: Worker) -> Body? {
    let waiting = state.withLock { state -> Body? in
      if let waiting = state.waiting.popFirst() { return waiting }
      state.idle.append(worker)
      return nil
    }
    if let waiting { return waiting }
    if !worker.semaphore.wait(until: .now + Self.patience) {
      let hasEnded = state.withLock { state in
        guard let place = state.idle.firstIndex(where: { $0 === worker }) else { return false }
        state.idle.remove(at: place)
        state.count -= 1
        return true
      }
      if hasEnded { return nil }
      // It got a call at that moment.
      _ = worker.semaphore.wait(until: nil)
    }
    return worker.next.withLock { $0.take() }
  }
}

/// Repeats an observer's failed looks. One repetition is pending at a time: meanwhile, events may
/// cause further looks, which fail, too.
package final class Retry: Sendable {
  private let isPending = Atomic(false)

  package init() {}

  /// Runs a closure at the monitor's next poll, unless one is pending.
  package func soon(_ body: @escaping @Sendable () -> Void) {
    guard !isPending.exchange(true, ordering: .acquiringAndReleasing) else { return }
    Blocking.retry { [weak self] in
      self?.isPending.store(false, ordering: .releasing)
      body()
    }
  }
}
