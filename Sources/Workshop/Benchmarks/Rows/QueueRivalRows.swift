import AppGroup
import Dispatch
import PropertyLists
import Synchronization
import SystemCalls

/// Storing entries of 160 bytes against common alternatives, SQLite and Redis, if they are
/// installed; alone, and by fifty concurrent senders in one process.
enum QueueRivalRows {
  private static let senders = 50
  private static let content = [UInt8](repeating: 120, count: 160)
  private static let padding = String(repeating: "x", count: 152)
  private static let number = Atomic(10_000_000)

  /// Each payload differs, because the entries of a file would otherwise share one string.
  static var payload: PropertyListValue {
    .string("\(number.add(1, ordering: .relaxed).newValue)" + padding)
  }

  static func measure(_ bench: Bench) throws -> [Row] {
    try [tasks(bench)] + lone(bench, .normal) + many(bench, .normal) + lone(bench, .full)
      + many(bench, .full) + redis(bench)
  }

  /// Measures fifty tasks that send one entry after another, as fast as they can.
  private static func tasks(_ bench: Bench) throws -> Row {
    let sender = try bench.container("queue-tasks").queue("q").sender("a")
    let each = bench.scaled(2_000)
    let results = try alternate(
      rounds: 3, [{ try inTasks(each) { try await sender.enqueue(payload) } }])
    let result = results[0].median
    return Row(
      "queue: send, 50 tasks", ours: [result], expected: .oursAtMost(10),
      notes: ["\(Int(1e9 / result)) a second"])
  }

  private static func lone(_ bench: Bench, _ kind: SQLiteQueue.Synchronous) throws -> [Row] {
    let name = "queue-lone-\(kind)"
    guard let floor = try SQLiteQueue(bench.directory(name + "-sqlite"), kind) else { return [] }
    let sender = try bench.container(name).queue("q").sender("a")
    let durability: Durability = kind == .full ? .durable : .standard
    return [
      try bench.compare(
        "queue: send\(kind == .full ? ", durable" : "") / sqlite \(kind.rawValue)",
        rounds: bench.rounds, runs: bench.scaled(kind == .full ? 100 : 1_000),
        ours: { try sender.enqueue(payload, durability: durability) },
        floor: { try floor.send(content) })
    ]
  }

  private static func many(_ bench: Bench, _ kind: SQLiteQueue.Synchronous) throws -> [Row] {
    let name = "queue-many-\(kind)"
    guard let floor = try SQLiteQueue(bench.directory(name + "-sqlite"), kind) else { return [] }
    let sender = try bench.container(name).queue("q").sender("a")
    let durability: Durability = kind == .full ? .durable : .standard
    let each = bench.scaled(kind == .full ? 400 : 2_000)
    let floorEach = bench.scaled(kind == .full ? 40 : 2_000)
    let results = try alternate(
      rounds: 5,
      [
        { try inTasks(each) { try await sender.enqueue(payload, durability: durability) } },
        {
          try nanosecondsPerRun(threads: senders, each: floorEach) { _ in
            { try floor.send(content) }
          }
        },
      ])
    return [
      Row(
        "queue: send\(kind == .full ? ", durable" : ""), 50 tasks / sqlite \(kind.rawValue), 50",
        ours: results[0], floor: results[1],
        expected: kind == .full ? .ratioAtMost(0.2) : nil,
        notes: ["\(Int(1e9 / results[0].median)) a second"])
    ]
  }

  private static func redis(_ bench: Bench) throws -> [Row] {
    guard let server = try RedisServer(bench.directory("queue-redis")) else { return [] }
    let connections = try (0..<senders).map { _ in try server.connection() }
    let sender = try bench.container("queue-rival-redis").queue("q").sender("a")
    let alone = try bench.compare(
      "queue: send, durable / redis always", rounds: bench.rounds, runs: bench.scaled(100),
      ours: { try sender.enqueue(payload, durability: .durable) },
      floor: { try connections[0].send(content) })
    let each = bench.scaled(400)
    let many = try alternate(
      rounds: 5,
      [
        { try inTasks(each) { try await sender.enqueue(payload, durability: .durable) } },
        {
          try nanosecondsPerRun(threads: senders, each: each) { number in
            { try connections[number].send(content) }
          }
        },
      ])
    return [
      alone,
      Row("queue: send, durable, 50 tasks / redis always, 50", ours: many[0], floor: many[1]),
    ]
  }

  /// - Returns: The nanoseconds that each send takes of the whole.
  static func inTasks(
    _ each: Int, _ send: @escaping @Sendable () async throws -> Void
  ) throws -> Double {
    let failure = FirstFailure()
    let done = DispatchSemaphore(value: 0)
    let begin = ContinuousClock.now
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
    try failure.check()
    return (ContinuousClock.now - begin).nanoseconds / Double(senders * each)
  }
}
