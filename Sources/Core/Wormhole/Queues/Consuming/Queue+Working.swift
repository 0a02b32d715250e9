import Synchronization
import WormholeSystem

extension Queue {
  /// Works for the queue until the task is cancelled: each entry that this process gets is handled by a
  /// closure.
  ///
  /// - The closure returns: the entry is acknowledged, unless the closure has ended it itself.
  /// - It throws: the attempt has failed. After a pause, which doubles with each attempt up to an hour,
  ///   the entry is delivered again; after the last attempt it has failed and is kept. The error is the
  ///   reason, as `failures()` and `wormhole queue list` show it.
  /// - The content has another shape: the closure is not called, and the entry has failed and is kept.
  /// - The entry is lost, because this process was stopped: another worker has it, and this one
  ///   continues with the next. `Diagnostics` reports it.
  /// - The task is cancelled: no further entry begins. Those in hand may end within the grace; then
  ///   their tasks are cancelled, and what has not ended is given back. That is not an attempt.
  ///
  /// ```swift
  /// let jobs = container.queue("jobs", of: [String].self)
  /// try await jobs.work(attempts: 3, concurrency: 4) { job in
  ///   print(try job.content, job.isRedelivery ? "again" : "")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - attempts: The number of attempts after which an entry has failed; those of workers that
  ///     died count. By default any number.
  ///   - backoff: The pause after the first failed attempt.
  ///   - concurrency: How many entries this process handles at a time.
  ///   - grace: The time that the entries in hand have to end after the task was cancelled.
  ///   - handler: Handles an entry, in a task of its own.
  /// - Throws: `WormholeError` if entries can no longer be taken, for an error that does not pass by
  ///   itself. The entries in hand end first, as after a cancellation.
  /// - Complexity: As `QueueConsumer.next` and `QueueEntry.acknowledge`, and a thread for that.
  public func work(
    attempts: Int? = nil, backoff: Duration = .seconds(1), concurrency: Int = 1,
    grace: Duration = .seconds(10),
    _ handler: @escaping @Sendable (QueueEntry<Content>) async throws -> Void
  ) async throws {
    try await worker(
      attempts: attempts, backoff: backoff, concurrency: concurrency, grace: grace, handler
    ).run()
  }

  /// Returns what `work` does, as a service to be run later. The parameters are as in `work`.
  ///
  /// - Parameters:
  ///   - attempts: The number of attempts after which an entry has failed.
  ///   - backoff: The pause after the first failed attempt.
  ///   - concurrency: How many entries this process handles at a time.
  ///   - grace: The time that the entries in hand have to end after the task was cancelled.
  ///   - handler: Handles an entry.
  public func worker(
    attempts: Int? = nil, backoff: Duration = .seconds(1), concurrency: Int = 1,
    grace: Duration = .seconds(10),
    _ handler: @escaping @Sendable (QueueEntry<Content>) async throws -> Void
  ) -> WormholeService {
    WormholeService {
      try await QueueWork(
        queue: self, attempts: attempts, backoff: backoff, concurrency: max(concurrency, 1),
        grace: grace, handler: handler
      ).run()
    }
  }
}

extension QueueEntry {
  /// Returns the pause after a failed attempt: it doubles with each, up to an hour.
  package static func pause(after attempt: Int, backoff: Duration) -> Duration {
    min(backoff * (1 << min(max(attempt - 1, 0), 20)), .seconds(3_600))
  }
}

/// The work of one `run`.
private struct QueueWork<Content: Codable & Sendable>: Sendable {
  let queue: Queue<Content>
  let attempts: Int?
  let backoff: Duration
  let concurrency: Int
  let grace: Duration
  let handler: @Sendable (QueueEntry<Content>) async throws -> Void
  private let jobs = JobsInHand()

  init(
    queue: Queue<Content>, attempts: Int?, backoff: Duration, concurrency: Int, grace: Duration,
    handler: @escaping @Sendable (QueueEntry<Content>) async throws -> Void
  ) {
    (self.queue, self.attempts, self.backoff) = (queue, attempts, backoff)
    (self.concurrency, self.grace, self.handler) = (concurrency, grace, handler)
  }

  func run() async throws {
    let consumer = try await join()
    do {
      while true {
        try await jobs.wait(until: { $0 < concurrency })
        let entry = try await consumer.next()
        jobs.begin(entry, handle)
      }
    } catch {
      // In a task of its own, because this one may be cancelled.
      try await Task { try await end(consumer) }.value
      throw error
    }
  }

  /// Waits for a consumer that has the queue alone, however long it takes.
  private func join() async throws -> QueueConsumer<Content> {
    while true {
      do {
        return try await queue.work(until: .now + .seconds(86_400), attempts: attempts)
      } catch WormholeError.Code.timedOut {
        continue
      }
    }
  }

  private func end(_ consumer: QueueConsumer<Content>) async throws {
    let isOver = try await jobs.wait(until: { $0 == 0 }, or: .now + grace)
    if !isOver {
      jobs.cancelAll()
      // The time that cancelled tasks have to end.
      try await jobs.wait(until: { $0 == 0 }, or: .now + .seconds(1))
    }
    // What has not ended is given back.
    try await Blocking.run { consumer.close() }
  }

  private func handle(_ entry: QueueEntry<Content>) async {
    do {
      _ = try entry.content
    } catch {
      return await settle(entry) { try entry.fail("\(error)", isKept: true) }
    }
    do {
      try await handler(entry)
      await settle(entry) { try entry.acknowledge() }
    } catch {
      // It was cut off at the end of the grace, which is not its fault.
      if Task.isCancelled { return await settle(entry) { try entry.giveBack() } }
      let pause = PlainEntry.pause(after: entry.attempt, backoff: backoff)
      await settle(entry) { try entry.retry(after: pause, because: "\(error)") }
    }
  }

  /// Repeats a step that ends a delivery until it succeeds, the entry is lost, or the work ends.
  private func settle(
    _ entry: QueueEntry<Content>, _ step: @escaping @Sendable () throws -> Void
  ) async {
    while true {
      do {
        return try await Blocking.run(step)
      } catch {
        Diagnostics.report(error)
        guard !error.isLossOfConsumer, !Task.isCancelled else { return }
        // If it is cancelled meanwhile, the step is tried once more.
        try? await Task.sleep(for: .seconds(1))
      }
    }
  }
}

/// The entries that a worker handles, each in a task.
private final class JobsInHand: Sendable {
  private struct State {
    var last = 0
    /// Nil for a task that has just begun.
    var tasks: [Int: Task<Void, Never>?] = [:]
  }

  private let state = Mutex(State())
  private let latch = WakeLatch()

  func begin<Content>(
    _ entry: QueueEntry<Content>, _ handle: @escaping @Sendable (QueueEntry<Content>) async -> Void
  ) {
    let number = state.withLock { state in
      state.last += 1
      state.tasks[state.last] = .some(nil)
      return state.last
    }
    let task = Task { [self] in
      await handle(entry)
      state.withLock { _ = $0.tasks.removeValue(forKey: number) }
      latch.raise()
    }
    state.withLock { if $0.tasks[number] != nil { $0.tasks[number] = task } }
  }

  func cancelAll() {
    for task in state.withLock(\.tasks).values { task?.cancel() }
  }

  /// Waits until the number of entries is as wanted.
  ///
  /// - Returns: Whether it is; false after the deadline.
  @discardableResult
  func wait(
    until isReached: @escaping @Sendable (Int) -> Bool, or deadline: ContinuousClock.Instant? = nil
  ) async throws -> Bool {
    try await runSuspending { [self] in
      StepwiseWait { [self] in
        if state.withLock({ isReached($0.tasks.count) }) { return .done(true) }
        return deadline.hasPassed ? .done(false) : .wait(for: latch, until: deadline)
      }
    }
  }
}
