import FoundationEssentials
import GroupDefaults
import Testing
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite(
  "Writes without durability are old or new after a power cut, never damaged", .blocking,
  .enabled(if: !Disk.usable.isEmpty))
struct StandardTests {
  /// The states of one value without durability.
  struct Life: Sendable {
    let identifier: String
    /// On the disk already.
    var old: PropertyListValue?
    /// Published in a row; nil is a removal.
    let states: [PropertyListValue?]
    var isUpdated = false

    /// The values that may be read if the last rename has reached the disk: those of the last
    /// second, but none from before a removal.
    var recent: [PropertyListValue?] {
      let removal = states.lastIndex { $0 == nil }
      return Array(states[(removal.map { $0 == states.count - 1 ? $0 : $0 + 1 } ?? 0)...])
    }
  }

  private static func large(_ byte: UInt8, _ count: Int) -> PropertyListValue {
    .data(Data(repeating: byte, count: count))
  }

  private static let counted = (2...60).map { PropertyListValue.integer($0) }

  /// Settings of 1,000 keys, of which each state changes one.
  private static let settings = (2...40).map { number in
    PropertyListValue.dictionary(
      Dictionary(
        uniqueKeysWithValues: (0..<1_000).map {
          ("key \($0)", .string("\($0 == 500 ? number : 0) of some length"))
        }))
  }

  private static let lives: [Life] = [
    // The first one, because its new directory is flushed to the disk together with all earlier
    // changes.
    Life(identifier: String(repeating: "long/", count: 60), states: [2]),
    Life(identifier: "replaced", old: 1, states: [2]),
    Life(identifier: "new", states: [2]),
    Life(identifier: "removed", old: 1, states: [nil]),
    Life(identifier: "large", old: 1, states: [large(0xA5, 1 << 20)]),
    Life(identifier: "grown", old: 1, states: [large(0xA5, 10_000)]),
    Life(identifier: "hot", old: 1, states: counted),
    Life(identifier: "hot and new", states: counted),
    Life(identifier: "counted", old: 1, states: counted, isUpdated: true),
    Life(
      identifier: "of any size", old: 1, states: [2, 3, large(1, 5_000), 4, large(2, 70_000), 5]),
    Life(identifier: "settings", old: 1, states: settings),
    Life(identifier: "settings by updates", old: 1, states: settings, isUpdated: true),
    Life(
      identifier: "zeros", old: 1, states: [2, large(0, 20_000), 3, settings[0], large(0, 20_000)]),
    Life(identifier: "back again", old: 1, states: [2, 3, nil, 4, 5]),
    Life(identifier: "back again by updates", old: 1, states: [2, 3, nil, 4, 5], isUpdated: true),
    Life(identifier: "gone again", states: [2, 3, nil]),
  ]

  @Test("of a single change, a hot value, an update, a removal, a large value, defaults, a state")
  func whole() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      // The second time another name's fsync brings the renames to the disk, and the third time the
      // machine goes on: only the file system is lost.
      for (isJournalWritten, isNewStart) in [(false, true), (true, true), (true, false)] {
        let path = try disk.makeContainer()
        try live(path, isJournalWritten)
        try disk.cutPower()
        try disk.restart(isNewStart: isNewStart)
        try check(path, isJournalWritten, "\(kind), new start \(isNewStart)")
      }
    }
  }

  // The detector must detect: the same cuts without any wait for the disk.
  #if DEBUG
    @Test("Without the waits for the disk the same cuts damage them")
    func detects() throws {
      let lazy = Faults.Plan { call, _ in call == .syncFileRange ? .skip : .proceed }
      for kind in Disk.usable {
        let disk = try Disk(kind)
        var intact: Set = ["replaced", "new", "hot", "counted", "large"]
        // On a busy machine the flush a second later may come before the cut, so there are several.
        for _ in 1...10 where !intact.isEmpty {
          let path = try disk.makeContainer()
          try Faults.$plan.withValue(lazy) {
            try live(path, true, Self.lives.filter { intact.contains($0.identifier) })
          }
          try disk.cutPower()
          try disk.restart()
          let container = try SharedContainer(path: path)
          intact = try intact.filter { identifier in
            do {
              _ = try container.value(identifier).read()
              return true
            } catch let error as WormholeError where error.code == .damaged {
              return false
            }
          }
        }
        #expect(intact.isEmpty, "\(kind)")
      }
    }
  #endif

  @Test("A second later the last publication is there, and removed values are gone")
  func followedUp() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      let path = try disk.makeContainer()
      do {
        let container = try SharedContainer(path: path)
        for life in Self.lives { try publish(life.states, life.isUpdated, container, life) }
        try eventually("all of it is on the disk") { container.hasFollowedUp }
        // Later publications belong to the next second.
        for number in 100...140 {
          try container.value("hot").replace(with: .integer(Int64(number)))
        }
      }
      try disk.cutPower()
      try disk.restart()
      let container = try SharedContainer(path: path)
      for life in Self.lives where life.identifier != "hot" {
        let found = try container.value(life.identifier).read()
        #expect(found == life.states[life.states.count - 1], "\(kind): \(life.identifier)")
      }
      let hot = try container.value("hot").read()?.int64Value
      #expect(hot == 60 || (100...140).contains(hot ?? 0), "\(kind)")
    }
  }

  private func publish(
    _ states: [PropertyListValue?], _ isUpdated: Bool, _ container: SharedContainer, _ life: Life
  ) throws {
    let value = container.value(life.identifier)
    for state in states {
      if isUpdated {
        try value.update { $0 = state }
      } else if let state {
        try value.replace(with: state)
      } else {
        try value.remove()
      }
    }
  }

  private func live(
    _ path: String, _ isJournalWritten: Bool, _ lives: [Life] = StandardTests.lives
  ) throws {
    let container = try SharedContainer(path: path)
    try container.value("other").replace(with: "intact", durability: .durable)
    for life in lives {
      guard let old = life.old else { continue }
      try container.value(life.identifier).replace(with: old, durability: .durable)
    }
    let defaults = GroupDefaults(suite: "suite", in: container)
    for number in 1...20 { defaults.set(number, forKey: "number") }
    for number in 1...20 { try container.notification("n").setState(UInt64(number)) }
    for life in lives { try publish(life.states, life.isUpdated, container, life) }
    guard isJournalWritten else { return }
    try container.value("anchor").replace(with: "intact", durability: .durable)
  }

  private func check(_ path: String, _ isJournalWritten: Bool, _ kind: String) throws {
    let container = try SharedContainer(path: path)
    #expect(try container.value("other").read() == "intact")
    if isJournalWritten { #expect(try container.value("anchor").read() == "intact") }
    for life in Self.lives {
      let value = container.value(life.identifier)
      let comment = Comment(rawValue: "\(kind), journal \(isJournalWritten): \(life.identifier)")
      #expect(throws: Never.self, comment) {
        let found = try value.read()
        #expect(life.recent.contains(found) || !isJournalWritten, comment)
        #expect(([life.old] + life.states).contains(found), comment)
      }
      // The container still works, and the kept version is of no further use.
      try value.replace(with: "again")
      #expect(try value.read() == "again", comment)
      try value.remove()
      #expect(try value.read() == nil, comment)
    }
    let defaults = GroupDefaults(suite: "suite", in: container)
    let number = try defaults.read(forKey: "number")?.intValue
    #expect(number.map { (1...20).contains($0) } ?? !isJournalWritten, "\(kind)")
    let state = try container.notification("n").state()
    #expect((isJournalWritten ? 1...20 : 0...20).contains(state), "\(kind)")
    let report = try container.report()
    let isQuiet = (report.names.values + report.own.values).allSatisfy {
      if case .unreadable = $0.condition { false } else { true }
    }
    #expect(isQuiet, "\(kind)")
    #expect(try container.report().foreignEntries.isEmpty, "\(kind)")
  }
}
