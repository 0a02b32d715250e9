import FoundationEssentials
import Wormhole
import WormholePeers
import WormholeTerminals
import WormholeToolkit
import WormholeWorkshop

/// The program's own instructions and allocations for an operation in steady state. Time and system
/// calls have other rows; these counts are the same on a busy machine and on every file system.
///
/// Expected: what the shortest code that keeps the promises takes, as far as it was ever tried.
enum CountRows {
  /// Enough repetitions that one of them is free of occasional work.
  private static let times = 3

  private struct Operation {
    let name: String
    /// The largest expected number of instructions in an optimized build.
    let limit: Double
    /// Makes what it needs in its own directory, and returns the operation.
    let prepare: @Sendable (SharedContainer) throws -> () throws -> Void
  }

  private static let operations = [
    Operation(name: "publish", limit: 6_000) { container in
      let value = container.value("value")
      return { try value.replace(with: SharedCount.content(1)) }
    },
    Operation(name: "update", limit: 12_000) { container in
      let value = container.value("value")
      return { try SharedCount.increment(value) }
    },
    Operation(name: "read and decode", limit: 6_000) { container in
      let value = container.value("value")
      try value.replace(with: SharedCount.content(1))
      return { _ = SharedCount.number(try value.read()) }
    },
    Operation(name: "post", limit: 1_500) { container in
      let notification = container.notification("notification")
      return { try notification.post() }
    },
    Operation(name: "send", limit: 8_000) { container in
      let sender = try container.queue("queue").sender("sender")
      return { _ = try sender.enqueue(SharedCount.payload) }
    },
    Operation(name: "take and acknowledge", limit: 10_000) { container in
      let queue = container.queue("queue")
      let sender = try queue.sender("sender")
      for _ in 0..<200 { try sender.enqueue(SharedCount.payload) }
      let consumer = try queue.consume()
      // Counted step by step, it takes longer than a past deadline allows.
      return { try consumer.next(until: .now + .seconds(60))?.acknowledge() }
    },
    Operation(name: "ask and get the answer", limit: 20_000) { container in
      let worker = try Worker("answer", [container.url.path])
      let session = try PeerSession("asker", in: container)
      return {
        _ = try session.request(SharedCount.payload, to: "answerer")
        withExtendedLifetime(worker) {}
      }
    },
    Operation(name: "coordinated read", limit: 12_000) { container in
      let file = try CoordinatedFile(in: container.url.path)
      return { try file.read() }
    },
    // Counted step by step, one takes seconds, so nothing is kept for the next one: this is a write after
    // a pause.
    Operation(name: "coordinated write", limit: 30_000) { container in
      let file = try CoordinatedFile(in: container.url.path)
      let content = [UInt8](repeating: 0x20, count: RawValue.contentBytes)
      return { try file.write(content) }
    },
  ]

  static func measure(_ bench: Bench) throws -> [Row] {
    try operations.map { operation in
      let place = try bench.directory("count \(operation.name)")
      let worker = try Worker("count", [place, operation.name])
      guard let allocator = try worker.ask("\(times)").first else {
        throw Failure(description: "the counted process has no malloc")
      }
      let work = try CountedWork(
        ofProcess: worker.process.processID, times: times, allocator: Int(allocator))
      return Row(
        "\(operation.name): instructions", .count, ours: [Double(work.instructions)],
        expected: .oursAtMost(operation.limit), notes: ["\(work.allocations) allocations"])
    }
  }

  /// Runs the process that is counted.
  static func count(_ directory: String, _ name: String) throws {
    guard let operation = operations.first(where: { $0.name == name }) else {
      throw Misuse("there is no operation \"\(name)\" to count")
    }
    let run = try operation.prepare(try SharedContainer(path: directory))
    for _ in 0..<100 { try run() }
    Terminal.print("ready")
    let times = readLine().flatMap { Int($0) }
    Terminal.print("\(CountedWork.allocator)")
    try CountedWork.offer(times: times ?? 1, run)
  }
}
