import WormholeSystem

extension Log {
  /// Returns a follower: a service that gives each message to a closure, one after another and in order,
  /// from the stored position of a subscriber.
  ///
  /// A message is acknowledged when the closure has returned. If the closure throws, the service
  /// ends with its error, and the next run begins with the same message. A follower that was
  /// stopped and replaced waits for its turn, and continues where its successor ends.
  ///
  /// ```swift
  /// try await container.log("sales").follower("printer") { sale in print(sale.payload) }.run()
  /// ```
  ///
  /// - Parameters:
  ///   - subscriber: Any string; one process at a time follows under this name.
  ///   - start: Where a new subscriber begins.
  ///   - handler: Handles a message, in the task that runs the service.
  /// - Returns: The service. Its `run` throws the error of the closure, or as `LogReader.next`.
  public func follower(
    _ subscriber: String, from start: LogStart = .beginning,
    _ handler: @escaping @Sendable (LogMessage<Content>) async throws -> Void
  ) -> WormholeService {
    WormholeService {
      while true {
        do {
          try await follow(subscriber, from: start, handler)
        } catch let error as WormholeError
          where [.leaseLost, .timedOut].contains(error.code) && !Task.isCancelled
        {
          if error.code == .leaseLost { Diagnostics.report(error) }
        } catch let failure as HandlerFailure {
          throw failure.error
        }
      }
    }
  }

  private func follow(
    _ subscriber: String, from start: LogStart,
    _ handler: @Sendable (LogMessage<Content>) async throws -> Void
  ) async throws -> Never {
    let reader = try await subscribe(subscriber, from: start, until: .now + .seconds(86_400))
    defer { reader.close() }
    while true {
      // This acknowledges the message before it.
      let message = try await reader.next()
      do { try await handler(message) } catch { throw HandlerFailure(error: error) }
      if Task.isCancelled { try await reader.acknowledge() }
    }
  }
}

/// An error of the closure, which may have the code of one of the follower's own.
private struct HandlerFailure: Error {
  let error: any Error
}
