import GroupDefaults
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("The age of a value after a power cut", .blocking, .enabled(if: !Disk.usable.isEmpty))
struct AgeTests {
  /// What Limits promises, in nanoseconds.
  private static let bound: UInt64 = 5_000_000_000

  // POWER_ROUNDS=20 for more cuts of each kind.
  private static let rounds = Program.environment("POWER_ROUNDS").flatMap { Int($0) } ?? 1

  // ```
  // process A              process B               process C (every second round)   this process
  // ticks clock, hot       ticks other, the same   ticks journal, durable           after 1.5 to 4 s:
  // until it fails         until it fails          until it fails                   cut the power
  // ```
  // The disk itself commits nothing within that time. The durable writes commit the names of A's values
  // whose content is not written yet.
  @Test("is at most five seconds, by a clock and under load, and it is not damaged")
  func age() throws {
    var random = TestSeed.next("WORMHOLE_POWER_SEED").generator
    for kind in Disk.usable {
      let disk = try Disk(kind)
      for round in 0..<Self.rounds * 2 {
        let path = try disk.makeContainer()
        let begin = bootTimeNanoseconds()
        var processes = try [Participant(path), Participant(path)]
        try processes[0].tell("ticks clock")
        try processes[1].tell("ticks other")
        if !round.isMultiple(of: 2) {
          processes.append(try Participant(path))
          try processes[2].tell("ticks journal durable")
        }
        let time = Duration.milliseconds(Int.random(in: 1_500...4_000, using: &random))
        WakeLatch().block(until: .now + time)
        try disk.cutPower()
        let last = try processes.map { try #require(try UInt64($0.answer())) }
        for process in processes { try process.end() }
        try disk.restart()
        let container = try SharedContainer(path: path)
        for (index, name) in ["clock", "other"].enumerated() {
          let found = try container.value(name).read()?.uint64Value
          let age = last[index] - min(last[index], found ?? begin)
          print("\(kind), round \(round): \"\(name)\" is \(age / 1_000_000) ms old")
          #expect(age < Self.bound, "\(kind), round \(round), \(name)")
        }
        if last.count > 2 {
          let found = try container.value("journal").read()?.uint64Value
          #expect(found ?? 0 >= last[2], "\(kind), round \(round): a durable value is not undone")
        }
      }
    }
  }

  @Test("is none after a command on a file system that commits later than ext4")
  func command() throws {
    let program = try BuiltProgram.path("wormhole")
    for kind in Disk.usable {
      let disk = try Disk(kind)
      let path = try disk.makeContainer()
      try SharedContainer(path: path).value("seats").replace(with: 1, durability: .durable)
      let writes = ["send seats 2", "defaults write seats 2", "update seats -- echo 3"]
      for write in writes {
        let command = "exec '\(program)' --container '\(path)' \(write)"
        let child = try ChildProcess("sh", ["-c", command])
        #expect(try child.wait(until: soon) == .exited(0))
      }
      try disk.cutPower()
      try disk.restart()
      let found = try SharedContainer(path: path).value("seats").read()
      #expect(found == 3 || kind == .ext4 && [1, 2].contains(found), "\(kind): \(found as Any)")
      let key = try GroupDefaults(in: SharedContainer(path: path)).read(forKey: "seats")
      #expect(key == 2 || kind == .ext4 && key == nil, "\(kind): \(key as Any)")
    }
  }

  @Test("of what follows a durable publication is not greater than that of the durable one")
  func durable() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      let path = try disk.makeContainer()
      do {
        let container = try SharedContainer(path: path)
        let large = PropertyListValue.string(longText(100_000))
        for (name, promised) in [("small", 100), ("large", large), ("kept", 30)] {
          let value = container.value(name)
          try value.replace(with: 0, durability: .durable)
          // Hot: from now on publications wait for nothing.
          for number in 1...30 { try value.replace(with: .integer(Int64(number))) }
          try value.update(durability: .durable) { content in
            // The last one changes nothing: what is there becomes durable.
            content = promised
          }
          if name != "kept" { try value.replace(with: promised, durability: .durable) }
          try value.replace(with: "after")
        }
        try container.value("anchor").replace(with: 1, durability: .durable)
      }
      try disk.cutPower()
      try disk.restart()
      let container = try SharedContainer(path: path)
      for (name, number) in [("small", 100), ("kept", 30)] as [(String, PropertyListValue)] {
        let found = try container.value(name).read()
        #expect(found == number || found == "after", "\(kind): \(name), \(found as Any)")
      }
      let large = try container.value("large").read()?.stringValue
      #expect(large == "after" || large?.utf8.count == 100_000, "\(kind)")
    }
  }
}
