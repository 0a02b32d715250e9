import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite(
  "A change of several values is all there or not at all after a power cut", .blocking,
  .enabled(if: !Disk.usable.isEmpty))
struct TransactionPowerTests {
  private static let names = ["a", "b", "c"]

  /// - Returns: The values as each is read by itself.
  private func read(_ path: String) throws -> [Int64?] {
    let container = try SharedContainer(path: path)
    return try Self.names.map { try container.value($0).read()?.int64Value }
  }

  private func write(_ names: [String], _ number: PropertyListValue, _ path: String) throws {
    let container = try SharedContainer(path: path)
    for name in names { try container.value(name).replace(with: number, durability: .durable) }
  }

  private func waitForChange(_ path: String) throws {
    let value = try SharedContainer(path: path).value("a")
    let before = try value.version()
    try eventually("they change it") { try value.version() != before }
  }

  @Test("A durable one that has returned is there")
  func durable() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      let path = try disk.makeContainer()
      try write(["a", "b"], 1, path)
      let writer = try Participant(path)
      #expect(try writer.ask("durable-together a,b-,c 2") == "done")
      try disk.cutPower()
      try writer.end()
      try disk.restart()
      #expect(try read(path) == [3, nil, 2], "\(kind)")
    }
  }

  @Test("Processes that change them all the time lose none of the sum")
  func busy() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      let path = try disk.makeContainer()
      try write(Self.names, 100, path)
      for _ in 0..<3 {
        let writers = try ["a,b,c", "c,a"].map { names in
          let writer = try Participant(path)
          try writer.tell("transfer \(names) 100000")
          return writer
        }
        try waitForChange(path)
        // The names of some moment reach the disk.
        try write(["other"], 1, path)
        try disk.cutPower()
        for writer in writers { try writer.end() }
        try disk.restart()
        let found = try read(path)
        #expect(found.reduce(0) { $0 + ($1 ?? 0) } == 300, "\(kind): \(found)")
        try SharedContainer(path: path).update(Self.names) { values in
          #expect(values.values.reduce(0) { $0 + ($1.int64Value ?? 0) } == 300)
          values["a"] = .integer((values["a"]?.int64Value ?? 0) + 0)
        }
      }
    }
  }
}
