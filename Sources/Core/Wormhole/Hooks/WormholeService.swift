/// Work that continues until its task is cancelled: the worker of a queue (`Queue.worker`), the
/// follower of a log (`Log.follower`), or a leader (`Leader.service`).
///
/// It has the shape of `Service` in the package swift-service-lifecycle, so this line is the whole
/// conformance: `extension WormholeService: @retroactive Service {}`. Give the `ServiceGroup` your
/// signals as `cancellationSignals`.
///
/// ```swift
/// let worker = container.queue("jobs").worker(attempts: 3) { job in print(job.payload) }
/// let running = Task { try await worker.run() }
/// running.cancel()        // no new job; the one in hand ends, or goes back
/// try await running.value
/// ```
public struct WormholeService: Sendable {
  private let body: @Sendable () async throws -> Void

  init(_ body: @escaping @Sendable () async throws -> Void) { self.body = body }

  /// Works until the task is cancelled, and then returns.
  ///
  /// - Throws: What ends the work before that; see the call that made it.
  public func run() async throws {
    do {
      try await body()
    } catch is CancellationError where Task.isCancelled {
      return
    }
  }
}
