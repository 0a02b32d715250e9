import Synchronization
import WormholeSystem

extension DirectoryQueue {
  func cancel(_ id: QueueEntryID, until deadline: ContinuousClock.Instant?) throws -> Bool {
    try cancellation(id, deadline).run()
  }

  func cancel(_ id: QueueEntryID, until deadline: ContinuousClock.Instant?) async throws -> Bool {
    try await runSuspending { self.cancellation(id, deadline) }
  }

  private func cancellation(
    _ id: QueueEntryID, _ deadline: ContinuousClock.Instant?
  ) -> sending Change<Bool> {
    let queue = queue
    return Change(queue.directory, .init(until: deadline)) { lease, _ in
      try queue.open()?.withdraw([id.index], of: id.batch, as: .cancelled, lease).isComplete
        ?? false
    }
  }

  func cancelAll(until deadline: ContinuousClock.Instant?) throws -> Int {
    guard var rest = try queue.open()?.ordered(QueueDirectory.pending)[...] else { return 0 }
    var count = 0
    while !rest.isEmpty {
      count += try cancellation(of: Array(rest.prefix(Self.withdrawnAtOnce)), deadline).run()
      rest = rest.dropFirst(Self.withdrawnAtOnce)
    }
    return count
  }

  private func cancellation(
    of batches: [EntryFile], _ deadline: ContinuousClock.Instant?
  ) -> sending Change<Int> {
    let queue = queue
    // Outside of the change, which is repeated after a lost lease, and then finds fewer.
    let count = Mutex(0)
    return Change(queue.directory, .init(until: deadline)) { lease, _ in
      guard let place = try queue.open() else { return count.withLock { $0 } }
      for batch in batches {
        let withdrawn = try place.withdraw(
          Set(0..<batch.count), of: batch, as: .cancelled, lease
        ).count
        count.withLock { $0 += withdrawn }
      }
      return count.withLock { $0 }
    }
  }
}
