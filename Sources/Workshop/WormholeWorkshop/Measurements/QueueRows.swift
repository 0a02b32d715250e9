package import Wormhole
import WormholeSystem

/// Sending to a queue and consuming it, against bare files that are created, renamed and removed.
package enum QueueRows {
  package static func sending(_ bench: Bench) throws -> Row {
    let (sender, raw) = try sides(bench, "queue")
    return try bench.compare(
      "queue: send / create + rename", rounds: bench.shortRounds, runs: 4,
      ours: { try sender.enqueue(SharedCount.payload) }, floor: { try raw.send() })
  }

  package static func sides(
    _ bench: Bench, _ name: String
  ) throws -> (ours: PlainSender, floor: RawQueue) {
    (
      try bench.container(name).queue("q").sender("a"),
      try RawQueue(bench.directory(name + "-raw"))
    )
  }

  package static func sendingDurably(_ bench: Bench) throws -> Row {
    let (sender, raw) = try sides(bench, "queue-durable")
    return try bench.compare(
      "queue: send, durable / fsync ×2", rounds: bench.rounds, runs: bench.scaled(30),
      ours: { try sender.enqueue(SharedCount.payload, durability: .durable) },
      floor: { try raw.send(durably: true) })
  }

  /// Measures taking and acknowledging one entry while few entries wait, and while many do.
  package static func consuming(_ bench: Bench) throws -> [Row] {
    try [0, bench.scaled(100_000)].map { waiting in
      let queue = try bench.container("queue-\(waiting)").queue("q")
      let sender = try queue.sender("a")
      for _ in 0..<waiting { try sender.enqueue(SharedCount.payload) }
      let raw = try RawQueue(bench.directory("queue-\(waiting)-raw"))
      let consumer = try queue.consume()
      defer { consumer.close() }
      return try bench.compare(
        "queue: take, \(waiting) wait / read + unlink", rounds: bench.shortRounds,
        ours: {
          for _ in 0..<4 { try sender.enqueue(SharedCount.payload) }
          return try nanosecondsPerEntry(4, consumer)
        },
        floor: {
          for _ in 0..<4 { try raw.send() }
          return try nanosecondsPerRun(4) { try raw.take() }
        })
    }
  }
}

/// Returns the nanoseconds for taking and acknowledging each of `count` entries.
package func nanosecondsPerEntry(_ count: Int, _ consumer: PlainConsumer) throws -> Double {
  try nanosecondsPerRun(count) { try consumer.next(until: .now + .seconds(5))?.acknowledge() }
}

/// The bare files of a queue with one sender and one consumer.
package final class RawQueue {
  private let directory: FileDescriptor
  private var sent = 0
  private var taken = 0
  private let content = [UInt8](repeating: 120, count: 200)

  package init(_ path: String) throws {
    directory = try FileDescriptor.open(path, [.readOnly, .directory])
  }

  package func send(durably: Bool = false) throws {
    try writeAndRename(content, to: "\(sent)", in: directory, durably: durably)
    sent += 1
  }

  package func take() throws {
    try rename("\(taken)", at: directory.rawValue, to: "taken", at: directory.rawValue)
    let file = try FileDescriptor.open("taken", at: directory.rawValue, .readOnly)
    _ = try file.readToEnd(expectedBytes: content.count, maximumBytes: 4_096)
    try removeFile("taken", at: directory.rawValue)
    taken += 1
  }
}
