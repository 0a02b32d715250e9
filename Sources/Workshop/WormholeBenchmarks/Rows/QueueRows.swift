import Dispatch
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeWorkshop

/// Many senders at once.
extension QueueRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    try [sending(bench), sendingDurably(bench), gathering(bench), crowding(bench)]
      + consuming(bench)
  }

  /// Measures fifty threads of one process that send at once: each send's share of the whole.
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

  /// Measures processes that send to one queue at once: each send's share of the whole. They share
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
  static func measure(_ bench: Bench) throws -> [Row] {
    let waiting = bench.isQuick ? 100_000 : 1_000_000
    let full = try bench.container("queue-full").queue("q")
    let empty = try bench.container("queue-empty").queue("q")
    let limits = QueueLimits(entries: 2_000_000, bytes: 4 << 30)
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
    // Four times the largest number that is sent together.
    let count = 4 * 512
    let take = try bench.compare(
      "queue: take, \(waiting) wait / 0 wait", rounds: bench.rounds, expected: .ratioAtMost(1.1),
      ours: { try nanosecondsPerEntry(count, fullConsumer) },
      floor: {
        try fill(emptySender, count)
        return try nanosecondsPerEntry(count, emptyConsumer)
      })
    return [send, take]
  }

  private static func fill(_ sender: PlainSender, _ count: Int) throws {
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

/// Storing entries of 160 bytes against common alternatives, SQLite and Redis, if they are
/// installed; alone, and by fifty concurrent senders in one process.
enum QueueRivalRows {
  private static let senders = 50
  private static let content = [UInt8](repeating: 120, count: 160)
  private static let padding = String(repeating: "x", count: 152)
  private static let number = Atomic(10_000_000)

  /// Each payload differs, because a file's entries would otherwise share one string.
  static var payload: PropertyListValue {
    .string("\(number.add(1, ordering: .relaxed).newValue)" + padding)
  }

  static func measure(_ bench: Bench) throws -> [Row] {
    var rows: [Row] = []
    func sqlite(_ kind: SQLiteQueue.Synchronous) throws -> SQLiteQueue? {
      try SQLiteQueue(bench.directory("queue-sqlite-\(kind)"), kind, bytes: content.count)
    }
    if let normal = try sqlite(.normal) {
      rows += try measure(
        bench, "sqlite NORMAL", floorEach: 2_000, expected: .oursAtMost(10)
      ) { _ in { try normal.send() } }
    } else {
      let many = try bench.container("queue-many").queue("q").sender("a")
      let times = try (0..<5).map { _ in
        try inTasks(bench.scaled(2_000)) { try await many.enqueue(payload) }
      }
      rows.append(Row("queue: send, 50 tasks", ours: times, expected: .oursAtMost(10)))
    }
    if let full = try sqlite(.full) {
      rows += try measure(
        bench, "sqlite FULL", durably: true, floorEach: 40, expected: .ratioAtMost(0.2)
      ) { _ in { try full.send() } }
    }
    if let server = try RivalServer.redis(bench.directory("queue-redis")) {
      let connections = try (0..<senders).map { _ in try RedisConnection(server) }
      rows += try measure(bench, "redis always", durably: true, floorEach: 400) { number in
        { try connections[number].send(content) }
      }
    }
    return rows
  }

  /// Measures one sender, and fifty that send one entry after another, as fast as they can, against a rival
  /// with the same durability.
  ///
  /// - Parameter floor: Returns the operation of one of the rival's senders.
  private static func measure(
    _ bench: Bench, _ rival: String, durably: Bool = false, floorEach: Int,
    expected expectation: Row.Expectation? = nil, _ floor: (Int) -> @Sendable () throws -> Void
  ) throws -> [Row] {
    let alone = try bench.container("queue-lone-\(rival)").queue("q").sender("a")
    let many = try bench.container("queue-many-\(rival)").queue("q").sender("a")
    let durability: Durability = durably ? .durable : .standard
    let name = "queue: send" + (durably ? ", durable" : "")
    let each = bench.scaled(durably ? 400 : 2_000)
    let floors = (0..<senders).map(floor)
    let together = try alternate(
      rounds: 5,
      [
        { try inTasks(each) { try await many.enqueue(payload, durability: durability) } },
        { try nanosecondsPerRun(threads: senders, each: bench.scaled(floorEach)) { floors[$0] } },
      ])
    return [
      try bench.compare(
        "\(name) / \(rival)", rounds: bench.rounds, runs: bench.scaled(durably ? 100 : 1_000),
        ours: { try alone.enqueue(payload, durability: durability) }, floor: floors[0]),
      Row(
        "\(name), 50 tasks / \(rival), 50", ours: together[0], floor: together[1],
        expected: expectation, notes: ["\(Int(1e9 / together[0].median)) a second"]),
    ]
  }

  /// - Returns: Each send's share of the whole in nanoseconds.
  static func inTasks(
    _ each: Int, _ send: @escaping @Sendable () async throws -> Void
  ) throws -> Double {
    let failure = FirstFailure()
    let done = DispatchSemaphore(value: 0)
    let time = nanosecondsPerRun {
      Task {
        await withTaskGroup { group in
          for _ in 0..<senders {
            group.addTask {
              do { for _ in 0..<each { try await send() } } catch { failure.note(error) }
            }
          }
        }
        done.signal()
      }
      done.wait()
    }
    try failure.check()
    return time / Double(senders * each)
  }
}
