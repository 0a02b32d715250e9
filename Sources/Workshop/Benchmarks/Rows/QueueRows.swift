import AppGroup
import SystemCalls

/// Sending to a queue and consuming it, against bare files that are created, renamed and removed.
enum QueueRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    try [sending(bench), sendingDurably(bench), gathering(bench), crowding(bench)]
      + consuming(bench)
  }

  private static func sending(_ bench: Bench) throws -> Row {
    let sender = try bench.container("queue").queue("q").sender("a")
    let raw = try RawQueue(bench.directory("queue-raw"))
    return try bench.compare(
      "queue: send / create + rename", rounds: bench.shortRounds, runs: 4,
      ours: { try sender.enqueue(RequestRows.payload) }, floor: { try raw.send() })
  }

  private static func sendingDurably(_ bench: Bench) throws -> Row {
    let sender = try bench.container("queue-durable").queue("q").sender("a")
    let raw = try RawQueue(bench.directory("queue-durable-raw"))
    return try bench.compare(
      "queue: send, durable / fsync ×2", rounds: bench.rounds, runs: bench.scaled(30),
      ours: { try sender.enqueue(RequestRows.payload, durability: .durable) },
      floor: { try raw.send(durably: true) })
  }

  /// Measures fifty threads of one process that send at once: each send's part of the whole.
  private static func gathering(_ bench: Bench) throws -> Row {
    let sender = try bench.container("queue-many").queue("q").sender("a")
    let raw = try RawQueue(bench.directory("queue-many-raw"))
    let each = bench.scaled(100)
    let alone = bench.scaled(30)
    return try bench.compare(
      "queue: send, durable, 50 threads / fsync ×2", rounds: bench.rounds,
      ours: {
        try nanosecondsPerRun(threads: 50, each: each) { _ in
          { try sender.enqueue(RequestRows.payload, durability: .durable) }
        }
      },
      floor: { try nanosecondsPerRun(alone) { try raw.send(durably: true) } })
  }

  private static let processes = 8

  /// Measures processes that send to one queue at once: each send's part of the whole. They have nothing in
  /// common but the file system, which commits for all that wait.
  private static func crowding(_ bench: Bench) throws -> Row {
    let place = try bench.directory("queue-crowd")
    let sender = try SharedContainer(path: place).queue("q").sender("alone")
    let workers = try (0..<processes).map { try Worker("send-durable", [place, "s\($0)"]) }
    let each = bench.scaled(100)
    return try bench.compare(
      "queue: send, durable, \(processes) processes / one process", rounds: bench.rounds,
      ours: {
        let begin = ContinuousClock.now
        for worker in workers { try worker.tell("\(each)") }
        for worker in workers { _ = try worker.answer() }
        return (ContinuousClock.now - begin).nanoseconds / Double(processes * each)
      },
      floor: {
        try nanosecondsPerRun(each) {
          try sender.enqueue(RequestRows.payload, durability: .durable)
        }
      })
  }

  /// Runs a process that sends.
  static func send(_ directory: String, as name: String) throws {
    let sender = try SharedContainer(path: directory).queue("q").sender(name)
    try Worker.serve { words in
      for _ in 0..<(words.first.flatMap { Int($0) } ?? 0) {
        try sender.enqueue(RequestRows.payload, durability: .durable)
      }
      return "sent"
    }
  }

  /// Measures taking and acknowledging one entry while few entries wait, and while many do.
  private static func consuming(_ bench: Bench) throws -> [Row] {
    try [0, bench.scaled(100_000)].map { waiting in
      let queue = try bench.container("queue-\(waiting)").queue("q")
      let sender = try queue.sender("a")
      for _ in 0..<waiting { try sender.enqueue(RequestRows.payload) }
      let raw = try RawQueue(bench.directory("queue-\(waiting)-raw"))
      let consumer = try queue.consume()
      defer { consumer.close() }
      return try bench.compare(
        "queue: take, \(waiting) wait / read + unlink", rounds: bench.shortRounds,
        ours: {
          for _ in 0..<4 { try sender.enqueue(RequestRows.payload) }
          return try nanosecondsPerRun(4) {
            try consumer.next(until: .now + .seconds(1))?.acknowledge()
          }
        },
        floor: {
          for _ in 0..<4 { try raw.send() }
          return try nanosecondsPerRun(4) { try raw.take() }
        })
    }
  }
}

/// The bare files of a queue with one sender and one consumer.
final class RawQueue {
  private let directory: FileDescriptor
  private var sent = 0
  private var taken = 0
  private let content = [UInt8](repeating: 120, count: 200)

  init(_ path: String) throws {
    directory = try FileDescriptor.open(path, [.readOnly, .directory])
  }

  func send(durably: Bool = false) throws {
    try writeAndRename(content, to: "\(sent)", in: directory, durably: durably)
    sent += 1
  }

  func take() throws {
    try rename("\(taken)", at: directory.rawValue, to: "taken", at: directory.rawValue)
    let file = try FileDescriptor.open("taken", at: directory.rawValue, .readOnly)
    _ = try file.readToEnd(expectedBytes: content.count, maximumBytes: 4_096)
    try removeFile("taken", at: directory.rawValue)
    taken += 1
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
