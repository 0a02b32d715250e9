import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("The power is cut while processes write", .blocking, .enabled(if: !Disk.usable.isEmpty))
struct BusyTests {
  private static let writes: Int64 = 3_000

  // ```
  // process A                         process B                    this process
  // durable seats 1 … 3000, each      set sketch 1 … 3000, each    after the nth answer of A:
  // answered when it has returned     answered likewise            cut the power
  // ```
  @Test("The last change acknowledged as durable, or the one after it, is there")
  func acknowledged() throws {
    var random = TestSeed.next("WORMHOLE_POWER_SEED").generator
    for kind in Disk.usable {
      let disk = try Disk(kind)
      for _ in 0..<3 {
        let path = try disk.makeContainer()
        let last = try write(path, disk, cutAfter: Int.random(in: 1...100, using: &random))
        try disk.restart()
        try check(path, last, "\(kind), the last acknowledged was \(last)")
      }
    }
  }

  /// - Returns: The last acknowledged number.
  private func write(_ path: String, _ disk: Disk, cutAfter count: Int) throws -> Int64 {
    let durable = try Participant(path)
    let standard = try Participant(path)
    for number in 1...Self.writes {
      try durable.tell("durable seats \(number)")
      try standard.tell("set sketch \(number)")
    }
    var acknowledged: Int64 = 0
    for _ in 0..<count {
      try #require(try durable.answer() == "done")
      acknowledged += 1
    }
    try disk.cutPower()
    while acknowledged < Self.writes, try durable.answer() == "done" { acknowledged += 1 }
    try durable.end()
    try standard.end()
    if acknowledged == Self.writes { print("all was written before the cut: a slow machine") }
    return acknowledged
  }

  private func check(_ path: String, _ last: Int64, _ comment: Comment) throws {
    let container = try SharedContainer(path: path)
    let seats = container.value("seats")
    let found = try seats.read()?.int64Value
    #expect(found == last || found == last + 1, comment)
    let sketch = try container.value("sketch").read()
    #expect(sketch.map { (1...Self.writes).contains($0.int64Value ?? 0) } ?? true, comment)
    for identifier in ["seats", "sketch"] {
      try container.value(identifier).replace(with: "again")
      #expect(try container.value(identifier).read() == "again")
    }
  }
}
