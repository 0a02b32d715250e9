import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit
import WormholeWorkshop

@Suite("The work of an operation, counted instruction by instruction,", .blocking)
struct CountedWorkTests {
  private let times = 1

  private func count(_ operation: String) throws -> CountedWork {
    let directory = try TemporaryDirectory()
    let process = try LineProcess(
      BuiltProgram.path("WormholeBenchmarks"), ["worker", "count", directory.path, operation],
      endsWithThread: true)
    #expect(try process.line(until: soon) == "ready")
    try process.tell("\(times)")
    let allocator = try #require(Int(try process.line(until: soon)))
    return try withExtendedLifetime(directory) {
      try CountedWork(ofProcess: process.processID, times: times, allocator: allocator)
    }
  }

  @Test("is the same in another process")
  func same() throws {
    var counts: [CountedWork] = []
    // Once a second, an operation looks whether the container is still the same directory. A count is
    // the same as an earlier one if neither or both contain that look.
    for _ in 0..<4 {
      let work = try count("post")
      #expect(work.instructions > 1_000)
      // Hash values differ from process to process.
      let equal = counts.contains {
        abs($0.instructions - work.instructions) * 50 < work.instructions
          && $0.allocations == work.allocations
      }
      guard !equal else { return }
      counts.append(work)
    }
    Issue.record("no two counts are the same: \(counts)")
  }

  // A debug build allocates more than an optimized one, whose counts are rows of `benchmarks`.
  @Test("has at most this number of allocations", arguments: [("post", 12)])
  func allocations(_ operation: String, _ limit: Int) throws {
    let work = try count(operation)
    #expect(work.allocations <= limit, "\(work)")
  }
}
