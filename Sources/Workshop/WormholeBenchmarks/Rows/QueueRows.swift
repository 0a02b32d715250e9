import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// Many senders at once.
extension QueueRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    try [sending(bench), sendingDurably(bench), gathering(bench), crowding(bench)]
      + consuming(bench)
  }

  /// Measures fifty threads of one process that send at once: each send's part of the whole.
  private static func gathering(_ bench: Bench) throws -> Row {
    let (sender, raw) = try sides(bench, "queue-many")
    let each = bench.scaled(100)
    let alone = bench.scaled(30)
    return try bench.compare(
      "queue: send, durable, 50 threads / fsync ×2", rounds: bench.rounds,
      ours: {
        try nanosecondsPerRun(threads: 50, each: each) { _ in
          { try sender.enqueue(SharedCount.payload, durability: .durable) }
        }
      },
      floor: { try nanosecondsPerRun(alone) { try raw.send(durably: true) } })
  }

  private static let processes = 8

  /// Measures processes that send to one queue at once: each send's part of the whole. They share
  /// only the file system, which commits for all waiting processes.
  private static func crowding(_ bench: Bench) throws -> Row {
    let place = try bench.directory("queue-crowd")
    let sender = try SharedContainer(path: place).queue("q").sender("alone")
    let workers = try (0..<processes).map { try Worker("send-durable", [place, "s\($0)"]) }
    let each = bench.scaled(100)
    return try bench.compare(
      "queue: send, durable, \(processes) processes / one process", rounds: bench.rounds,
      ours: { try Worker.race(workers, "\(each)").time },
      floor: {
        try nanosecondsPerRun(each) {
          try sender.enqueue(SharedCount.payload, durability: .durable)
        }
      })
  }

  /// Runs a process that sends.
  static func send(_ directory: String, as name: String) throws {
    let sender = try SharedContainer(path: directory).queue("q").sender(name)
    try Worker.serve { line in
      for _ in 0..<(Int(line) ?? 0) {
        try sender.enqueue(SharedCount.payload, durability: .durable)
      }
      return line
    }
  }
}

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
      ours: { try nanosecondsPerEntry(count, fullConsumer) },
      floor: {
        try fill(emptySender, count)
        return try nanosecondsPerEntry(count, emptyConsumer)
      })
    return [send, take]
  }

  private static func fill(_ sender: Queue.Sender, _ count: Int) throws {
    let each = Int((Double(count) / 50).rounded(.up))
    _ = try QueueRivalRows.inTasks(each) { try await sender.enqueue(QueueRivalRows.payload) }
  }
}

/// Appending to a log and reading it, against a bare file that is created and renamed, and against the
/// library's own publication of a value.
enum LogRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let container = try bench.container("log")
    let (log, value) = (container.log("l"), container.value("v"))
    let raw = try RawQueue(bench.directory("log-raw"))
    func appending(_ beside: String, _ floor: @escaping () throws -> Void) throws -> Row {
      try bench.compare(
        "log: append / \(beside)", rounds: bench.shortRounds, runs: 4,
        ours: { try log.append(SharedCount.payload) }, floor: floor)
    }
    return try [
      appending("create + rename") { try raw.send() },
      appending("publish a value") { try value.replace(with: SharedCount.payload) },
      reading(bench),
    ]
  }

  /// Measures reading a message for a named subscriber, which stores its position.
  private static func reading(_ bench: Bench) throws -> Row {
    let container = try bench.container("log-read")
    let log = container.log("l")
    let value = container.value("v")
    let reader = try log.subscribe("a")
    return try bench.compare(
      "log: read, named / update a value", rounds: bench.shortRounds,
      ours: {
        for _ in 0..<4 { try log.append(SharedCount.payload) }
        return try nanosecondsPerRun(4) { _ = try reader.next(until: .now) }
      },
      floor: {
        try nanosecondsPerRun(4) {
          try value.update { $0 = PropertyListValue(($0?.intValue ?? 0) + 1) }
        }
      })
  }
}
