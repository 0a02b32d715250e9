import FoundationEssentials
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole

@Suite("A log that is removed", .blocking)
struct LogRemovalTests {
  let scene: LogScene
  var log: PlainLog { scene.log }

  init() throws { scene = try LogScene() }

  /// The log as another process has it.
  private func other() throws -> PlainLog { try scene.directory.container().log("l") }

  @Test(
    "is gone with messages, bounds and subscribers, and begins again with the next", .bothEngines)
  func removed() throws {
    #expect(try !log.remove())
    try scene.append(0..<3)
    try log.setBounds(.init(messages: 9, bytes: 1 << 20))
    #expect(try scene.read(as: "a") == [0, 1, 2])
    try scene.container.log("l2").append(7)
    #expect(try other().remove())
    #expect(try scene.container.logNames() == ["l2"])
    #expect(try LogCursor.value("a", of: log).version() == nil)
    #expect(try !log.remove() && scene.read() == [])
    #expect(try other().append(8) == 1 && log.append(9) == 2)
    #expect(try log.bounds() == .standard && scene.read() == [8, 9])
    #expect(try scene.read(as: "a") == [8, 9])
    #expect(try scene.container.log("l2").read().next(until: .now)?.payload == 7)
    #expect(try scene.container.report().leftovers.isEmpty)
  }

  @Test(
    "is followed by its reader into the log that begins again, from its first message", .bothEngines
  )
  func followed() throws {
    try scene.append(0..<2)
    for subscriber in [nil, "a"] {
      let reader = try subscriber.map { try log.subscribe($0, from: .end) } ?? log.read(from: .end)
      #expect(try reader.next(until: .now + .milliseconds(10)) == nil)
      #expect(try other().remove())
      // As many as make the number that it waits for.
      for number in 7..<10 { try other().append(PropertyListValue(number)) }
      var read: Set<Int> = []
      try eventually("it has read all: \(read)") {
        try read.formUnion(scene.drain(reader))
        return read == [7, 8, 9]
      }
      reader.close()
    }
  }

  @Test("loses nothing that is appended after it, while others append and remove", .bothEngines)
  func writers() throws {
    let writer = try scene.participant()
    let notes = scene.directory.path + "/appended"
    try writer.tell("log-append l 0 100 \(notes)")
    while try scene.noted(notes).count < 100 {
      try other().remove()
      // The next messages have appeared whole, and in their order.
      let read = try scene.read()
      #expect(read == Array((read.first ?? 0)..<((read.last ?? -1) + 1)), "\(read)")
    }
    #expect(try writer.answer() == "done")
    try scene.append(100..<103)
    let read = try scene.read()
    #expect(read == Array((read.first ?? 0)..<103), "\(read)")
    #expect(try other().remove() && scene.container.logNames().isEmpty)
  }

  #if DEBUG
    @Test(
      "is there as before, or empty, if the process that removes it is killed before any step",
      arguments: TriedSteps.shares)
    func killed(share: Int) throws {
      try TriedSteps.each(of: share, moreThan: 20) { step in
        let scene = try LogScene()
        try scene.append(0..<3)
        try scene.log.setBounds(.init(messages: 9, bytes: 1 << 20))
        let wasKilled = try scene.participant().dies(of: "die \(step) log-remove l")
        func comment() -> Comment { "before call \(step): \(scene.directory.listing)" }
        let read = try scene.read()
        #expect(read == [0, 1, 2] || Set(read).isSubset(of: [0, 1, 2]), comment())
        if read != [0, 1, 2] {
          // A sweep leaves what is in use: a child that this process is starting has its files for a moment.
          try eventually("it is swept") {
            _ = try scene.container.sweep()
            return try scene.container.logNames().isEmpty
          }
        }
        try scene.directory.container().log("l").append(9)
        #expect(try scene.read().last == 9, comment())
        #expect(try scene.container.report().leftovers.isEmpty, comment())
        return wasKilled
      }
    }

    @Test(
      "keeps what was appended while the process that removes it was stopped before any step",
      arguments: TriedSteps.shares)
    func stopped(share: Int) throws {
      try TriedSteps.each(of: share, moreThan: 20) { step in
        let scene = try LogScene()
        try scene.append(0..<3)
        let late = try scene.participant()
        let wasStopped = try late.stops(in: "stop \(step) log-remove l")
        if !wasStopped { #expect(try late.answer() == "done") }
        func comment() -> Comment { "before call \(step): \(scene.directory.listing)" }
        let other = try scene.directory.container().log("l")
        try other.append(9, until: .now + .seconds(5))
        if wasStopped {
          try late.send(.continue)
          #expect(try late.answer() == "done", comment())
        }
        let read = try scene.read()
        #expect(read == [9] || read == [] || read == [0, 1, 2, 9], comment())
        try other.append(10)
        #expect(try scene.read().last == 10, comment())
        return wasStopped
      }
    }
  #endif
}
