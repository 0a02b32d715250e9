import Dispatch
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeWorkshop

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
    try [tasks(bench)] + sqlite(bench, .normal) + sqlite(bench, .full) + redis(bench)
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

  /// Measures one sender, and fifty, against SQLite with the same durability.
  private static func sqlite(_ bench: Bench, _ kind: SQLiteQueue.Synchronous) throws -> [Row] {
    let (lone, many) = ("queue-lone-\(kind)", "queue-many-\(kind)")
    guard let loneFloor = try SQLiteQueue(bench.directory(lone + "-sqlite"), kind),
      let manyFloor = try SQLiteQueue(bench.directory(many + "-sqlite"), kind)
    else { return [] }
    let loneSender = try bench.container(lone).queue("q").sender("a")
    let manySender = try bench.container(many).queue("q").sender("a")
    let isFull = kind == .full
    let durability: Durability = isFull ? .durable : .standard
    let name = "queue: send" + (isFull ? ", durable" : "")
    let alone = try bench.compare(
      "\(name) / sqlite \(kind.rawValue)", rounds: bench.rounds,
      runs: bench.scaled(isFull ? 100 : 1_000),
      ours: { try loneSender.enqueue(payload, durability: durability) },
      floor: { try loneFloor.send(content) })
    let each = bench.scaled(isFull ? 400 : 2_000)
    let floorEach = bench.scaled(isFull ? 40 : 2_000)
    let results = try alternate(
      rounds: 5,
      [
        { try inTasks(each) { try await manySender.enqueue(payload, durability: durability) } },
        {
          try nanosecondsPerRun(threads: senders, each: floorEach) { _ in
            { try manyFloor.send(content) }
          }
        },
      ])
    let together = Row(
      "\(name), 50 tasks / sqlite \(kind.rawValue), 50", ours: results[0], floor: results[1],
      expected: isFull ? .ratioAtMost(0.2) : nil,
      notes: ["\(Int(1e9 / results[0].median)) a second"])
    return [alone, together]
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
    let many = try bench.compare(
      "queue: send, durable, 50 tasks / redis always, 50", rounds: 5,
      ours: { try inTasks(each) { try await sender.enqueue(payload, durability: .durable) } },
      floor: {
        try nanosecondsPerRun(threads: senders, each: each) { number in
          { try connections[number].send(content) }
        }
      })
    return [alone, many]
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
