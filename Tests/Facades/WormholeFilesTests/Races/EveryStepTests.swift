#if DEBUG
  import FoundationEssentials
  import Testing
  import WormholeSystem
  import WormholeTestSupport
  import WormholeToolkit

  @testable import WormholeFiles

  /// A complete coordinated change, stopped or killed before each of its system calls.
  @Suite("A coordinated change that ends or stops at any step", .blocking)
  struct EveryStepTests {
    /// One change, with the item before and after it.
    struct Change: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let command: String
      let prepare: String
      let old: String
      let new: String
      /// The distance of the tried steps, which begin at a random one; 1 with EVERY_STEP.
      var stride = 10

      static let all = [
        Change(
          testDescription: "a file is changed", command: "writing ITEM put=new",
          prepare: "printf old >item", old: "old", new: "new"),
        Change(
          testDescription: "a file is deleted", command: "deleting ITEM erase=yes",
          prepare: "printf old >item", old: "old", new: "nothing"),
        Change(
          testDescription: "a directory is replaced", command: "replacing ITEM tree=x,y",
          prepare: "mkdir -p item/sub; printf old >item/file", old: "file sub", new: "x y"),
        Change(
          testDescription: "a directory is changed", command: "writing ITEM tree=x",
          prepare: "mkdir -p item/sub; printf old >item/file", old: "file sub", new: "file sub x"),
        Change(
          testDescription: "an item is moved", command: "moving ITEM rename=PLACE",
          prepare: "printf old >item", old: "old", new: "nothing"),
      ]
    }

    let scene: RaceScene

    init() throws { scene = try RaceScene() }

    /// With its own home, so that no presenter of another test adds to its calls.
    private func participant() throws -> Participant {
      try Participant(
        scene.directory.path, environment: ["XDG_DATA_HOME=\(scene.directory.path)/data"])
    }

    private func command(_ change: Change) -> String {
      change.command.replacing("ITEM", with: scene.path("item"))
        .replacing("PLACE", with: scene.path("place"))
    }

    private func prepare(_ change: Change) throws {
      try scene.directory.shell("rm -rf item* place; \(change.prepare)", in: "items")
    }

    private func state() throws -> String {
      switch try ItemPath.find(scene.path("item"), followingLink: false).place.status()?.kind {
      case nil: return "nothing"
      case .directory: return try scene.names(in: "item").joined(separator: " ")
      default: return try scene.text("item") ?? ""
      }
    }

    /// Returns the number of system calls of the change.
    private func calls(_ change: Change) throws -> Int {
      try prepare(change)
      let calls = try participant().calls(of: command(change))
      #expect(try state() == change.new)
      return calls
    }

    private func steps(_ change: Change) throws -> [Int] {
      let calls = try calls(change)
      #expect(calls > 40)
      let every = TriedSteps.isThorough ? 1 : change.stride
      print("\(change.testDescription): \(calls) system calls, every \(every).")
      let seed = TestSeed.next("COORDINATION_STEP_SEED")
      var generator = seed.generator
      let first = Int.random(in: 0..<every, using: &generator)
      // The few calls after publication are always tried, up to the end.
      let last = max(calls - Self.lastCalls, first)
      return Array(stride(from: first, to: last, by: every)) + Array(last..<calls + Self.most)
    }

    private static let lastCalls = 8
    /// More calls than this beyond the counted ones are a defect.
    private static let most = 100

    private var left: [String] {
      get throws { try scene.names().filter { $0 != "place" } }
    }

    @Test(
      "killed: the item is as before or as after, and the next access removes all remains",
      arguments: Change.all)
    func killed(_ change: Change) throws {
      var isNew = false
      for step in try steps(change) {
        try prepare(change)
        let isEnd = try !participant().dies(of: "die \(step) " + command(change))
        let found = try state()
        #expect(
          found == (isNew ? change.new : found == change.new ? change.new : change.old),
          "killed before call \(step)")
        isNew = found == change.new
        // Reading leaves no trace, but does not clean up either.
        let read = try FileCoordinator().coordinate(readingItemAt: scene.url("item")) { _ in
          try state()
        }
        #expect(read == found)
        try FileCoordinator().coordinate(writingItemAt: scene.url("item"), options: .forReplacing) {
          try ItemText.write("next", to: $0.path)
        }
        #expect(try scene.text("item") == "next")
        #expect(try left == ["item"], "killed before call \(step): \(scene.directory.listing)")
        if isEnd {
          #expect(found == change.new)
          return
        }
      }
      Issue.record("it never ends")
    }

    // late                       others
    // stopped before call N
    //                            replace the item
    // continues: done before, or overtaken
    @Test(
      "stopped: others continue; it was done before or gets an error, and no change is lost",
      arguments: Change.all.prefix(3))
    func stopped(_ change: Change) throws {
      for step in try steps(change) {
        try prepare(change)
        let late = try participant()
        guard try late.stops(in: "stop \(step) " + command(change)) else {
          #expect(try late.answer() == "done")
          #expect(try state() == change.new)
          return
        }
        let before = try state()
        try FileCoordinator().coordinate(writingItemAt: scene.url("item"), options: .forReplacing) {
          try ItemText.write("others", to: $0.path)
        }
        #expect(try scene.text("item") == "others", "stopped before call \(step)")
        try late.send(.continue)
        let answer = try late.answer()
        let after = try state()
        let comment = "stopped before call \(step): \(before), \(answer), \(after)"
        let kept = try left.filter { $0.hasPrefix("item.conflict-") }
        #expect(try left.filter { $0 != "item" } == kept, "\(comment) \(scene.directory.listing)")
        #expect(kept.count <= (answer == "done" ? 0 : 1), "\(comment)")
        if answer == "done" {
          // Published before it was stopped, or begun after the others with their change.
          let wasBefore = before == change.new
          #expect(after == (wasBefore ? "others" : change.new), "\(comment)")
        } else {
          #expect(answer.hasPrefix("error overtaken "), "\(comment)")
          if answer.hasPrefix("error overtaken ") {
            #expect(answer.contains("process \(Program.processID) ("), "\(comment)")
          }
          #expect(after == "others", "\(comment)")
        }
      }
      Issue.record("it never ends")
    }
  }
#endif
