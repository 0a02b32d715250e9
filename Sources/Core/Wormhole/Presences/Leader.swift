import WormholeSystem

/// A named lock, for one process at a time; on etcd across all machines. `wormhole lock --name`
/// takes the same lock.
///
/// The process that has it keeps it as long as it lives, even while it is stopped: `leader` is for work
/// that another process should continue.
///
/// ```swift
/// try await container.mutex("nightly-backup").withLock(until: .now + .seconds(1)) { _ in
///   print("no other backup runs")
/// }
/// ```
public struct NamedMutex: Sendable {
  /// The presence whose exclusive role is the lock.
  public let presence: Presence

  /// Runs a closure while no other process has the lock.
  ///
  /// - Parameters:
  ///   - deadline: The latest instant to wait for the lock; by default 10 seconds from now.
  ///   - body: Receives the fence, which later holders break: `update(while:)` and `enqueue(while:)`
  ///     take it.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or `WormholeError.Code.timedOut` with the holder, otherwise as
  ///   `Presence.enter`.
  /// - Complexity: As `Presence.enterExclusively`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func withLock<Result>(
    until deadline: ContinuousClock.Instant? = nil, _ body: (Fence) throws -> Result
  ) throws -> Result {
    let role = try presence.enterExclusively(overtaking: .nobody, until: deadline)
    defer { role.close() }
    return try body(role.fence)
  }

  /// Runs a closure while no other process has the lock; see the form without `async`. Cancelling the
  /// task ends the wait with `CancellationError`.
  public func withLock<Result: Sendable>(
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @Sendable (Fence) async throws -> Result
  ) async throws -> Result {
    let role = try await presence.enterExclusively(overtaking: .nobody, until: deadline)
    do {
      let result = try await body(role.fence)
      await role.finish()
      return result
    } catch {
      await role.finish()
      throw error
    }
  }
}

/// The election of one of several processes, to do what only one may do.
///
/// A leader that dies or is stopped is replaced; when it is continued, it learns that it has lost.
///
/// ```swift
/// try await container.leader("cleaner").lead { fence in
///   while !Task.isCancelled {
///     try await container.value("cleaned").update(while: fence) { $0 = "all rooms" }
///     try await Task.sleep(for: .seconds(60))
///   }
/// }
/// ```
public struct Leader: Sendable {
  /// The presence whose exclusive role the leader has.
  public let presence: Presence

  /// Runs a closure whenever this process is the leader, and waits for that as long as it takes.
  ///
  /// When the role is lost, because this process was stopped or cut off, the task that runs `body` is
  /// cancelled, and this process waits to lead again.
  ///
  /// - Parameter body: Receives the fence of this leadership: a change with it is refused once another
  ///   process leads. Its result, or its error while it leads, ends the call.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`; `CancellationError` if the calling task is cancelled; or
  ///   `WormholeError` as `Presence.enter`.
  /// - Complexity: As `Presence.enterExclusively` each time.
  public func lead<Result: Sendable>(
    _ body: @escaping @Sendable (Fence) async throws -> Result
  ) async throws -> Result {
    while true {
      let role: PresenceRegistration
      do {
        role = try await presence.enterExclusively(until: .now + SharedContainer.standardWait)
      } catch WormholeError.Code.timedOut {
        continue
      }
      let work = Task { try await body(role.fence) }
      role.onLoss { _ in work.cancel() }
      let outcome = await withTaskCancellationHandler {
        await work.result
      } onCancel: {
        work.cancel()
      }
      let isLost = role.loss != nil
      await role.finish()
      if case .failure = outcome, isLost, !Task.isCancelled { continue }
      return try outcome.get()
    }
  }
}

extension Leader {
  /// Returns what `lead` does, as a service to be run later.
  ///
  /// - Parameter body: Receives the fence of each leadership. Its result, or its error while it leads, ends
  ///   the service.
  public func service(
    _ body: @escaping @Sendable (Fence) async throws -> Void
  ) -> WormholeService {
    WormholeService { try await lead(body) }
  }
}

extension PresenceRegistration {
  /// Closes it on a thread that may block.
  fileprivate func finish() async {
    // The body throws nothing, so this never fails.
    try? await Blocking.run { self.close() }
  }
}

extension SharedContainer {
  /// Returns the lock with a name; no file is touched before its first use.
  ///
  /// - Parameter name: Any string, byte for byte. It is the name of a presence, too.
  public func mutex(_ name: String) -> NamedMutex { NamedMutex(presence: presence(name)) }

  /// Returns the election under a name; no file is touched before its first use.
  ///
  /// - Parameter name: Any string, byte for byte. It is the name of a presence, too.
  public func leader(_ name: String) -> Leader { Leader(presence: presence(name)) }
}
