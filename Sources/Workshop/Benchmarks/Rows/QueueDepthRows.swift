import AppGroup
import PropertyLists
import Synchronization

/// The cost of sending and taking while a million entries wait, against an empty queue.
enum QueueDepthRows {
  /// The largest number of entries that are sent together.
  private static let together = 512

  static func measure(_ bench: Bench) throws -> [Row] {
    let waiting = bench.isQuick ? 100_000 : 1_000_000
    let full = try bench.container("queue-full").queue("q")
    let empty = try bench.container("queue-empty").queue("q")
    let limits = Queue.Limits(entries: 2_000_000, bytes: 4 << 30)
    let fullSender = try full.sender("a", limits: limits)
    let emptySender = try empty.sender("a", limits: limits)
    try fill(fullSender, waiting)
    let send = try bench.compare(
      "queue: send, \(waiting) wait / 0 wait", rounds: bench.shortRounds, runs: 4,
      expected: .ratioAtMost(1.1), ours: { try fullSender.enqueue(QueueRivalRows.payload) },
      floor: { try emptySender.enqueue(QueueRivalRows.payload) })
    let fullConsumer = try full.consume()
    let emptyConsumer = try empty.consume()
    while try emptyConsumer.next(until: .now)?.acknowledge() != nil {}
    let count = together * 4
    let take = try bench.compare(
      "queue: take, \(waiting) wait / 0 wait", rounds: bench.rounds, expected: .ratioAtMost(1.1),
      ours: { try Self.take(count, fullConsumer) },
      floor: {
        try fill(emptySender, count)
        return try Self.take(count, emptyConsumer)
      })
    return [send, take]
  }

  private static func take(_ count: Int, _ consumer: Queue.Consumer) throws -> Double {
    try nanosecondsPerRun(count) { try consumer.next(until: .now + .seconds(1))?.acknowledge() }
  }

  private static func fill(_ sender: Queue.Sender, _ count: Int) throws {
    let each = Int((Double(count) / 50).rounded(.up))
    _ = try QueueRivalRows.inTasks(each) { try await sender.enqueue(QueueRivalRows.payload) }
  }
}
