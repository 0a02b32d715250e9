/// The entries that a consumer takes.
///
/// ```swift
/// let worker = try await container.queue("jobs").work()
/// for try await entry in worker.entries() { try entry.acknowledge() }
/// ```
public struct ConsumerEntries<Content: Codable & Sendable>: AsyncSequence, Sendable {
  let consumer: QueueConsumer<Content>

  /// Any error may end it.
  public typealias Failure = any Error

  /// Makes an iterator; for one task at a time.
  public func makeAsyncIterator() -> Iterator { Iterator(consumer: consumer) }

  /// The iterator.
  public struct Iterator: AsyncIteratorProtocol {
    let consumer: QueueConsumer<Content>

    /// Takes the next entry; nil after the consumer was closed.
    ///
    /// - Throws: As `QueueConsumer.next`.
    /// - Parameter actor: The actor of the caller.
    public func next(isolation actor: isolated (any Actor)? = #isolation) async throws
      -> QueueEntry<Content>?
    {
      do {
        return try await consumer.next()
      } catch let error as WormholeError where error.code == .invalidToken {
        return nil
      }
    }
  }
}
