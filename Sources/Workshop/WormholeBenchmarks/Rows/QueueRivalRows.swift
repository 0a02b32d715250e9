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
    if let server = try RedisServer(bench.directory("queue-redis")) {
      let connections = try (0..<senders).map { _ in try server.connection() }
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

  /// - Returns: The nanoseconds that each send takes of the whole.
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
