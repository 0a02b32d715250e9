import WormholeInspection

#if DEBUG
  import FoundationEssentials
  import Testing
  import WormholePropertyLists
  import WormholeSystem
  import WormholeTestSupport

  @testable import Wormhole

  @Suite("A log, whatever happens to its processes,", .blocking)
  struct LogCrashTests {
    /// - Returns: nil if it was stopped; its answer otherwise.
    private func stopped(_ late: Participant, _ command: String) throws -> String? {
      try late.tell(command)
      return try late.hasAnswer() ? late.answer() : nil
    }

    @Test(
      "has no gap, and loses nothing that was appended, if a writer is killed before any step",
      arguments: TriedSteps.shares, [false, true])
    func writerKilled(share: Int, isBounded: Bool) throws {
      try TriedSteps.each(of: share, moreThan: 40) { step in
        let scene = try LogScene()
        // Each message takes one away then.
        if isBounded { try scene.log.setBounds(.init(messages: 2, bytes: 1 << 20)) }
        let notes = scene.directory.path + "/appended"
        let wasKilled = try scene.participant().dies(of: "die \(step) log-append l 0 3 \(notes)")
        let appended = try scene.noted(notes).count
        let last = try scene.directory.container().log("l").append(9)
        func comment() -> Comment { "before call \(step): \(scene.directory.listing)" }
        #expect((appended + 1...appended + 2).contains(last), comment())
        _ = try scene.container.sweep()
        let kept = try scene.numbers()
        let first = isBounded ? max(1, last - 1) : 1
        #expect(kept == Array(first...last), comment())
        #expect(try scene.read() == Array(0..<(last - 1)).suffix(last - first) + [9], comment())
        #expect(try scene.container.report().leftovers.isEmpty, comment())
        return wasKilled
      }
    }

    @Test(
      "gives each message one number if a writer is stopped before any step, and others go on",
      arguments: TriedSteps.shares)
    func writerStopped(share: Int) throws {
      try TriedSteps.each(of: share, moreThan: 40) { step in
        let scene = try LogScene()
        try scene.log.setBounds(.init(messages: 4, bytes: 1 << 20))
        let notes = scene.directory.path + "/appended"
        let late = try scene.participant()
        let answer = try stopped(late, "stop \(step) log-append l 0 3 \(notes)")
        let other = try scene.directory.container().log("l")
        let reader = try other.subscribe("a", from: .number(1))
        var read = try scene.drain(reader)
        for number in 10..<13 {
          try other.append(PropertyListValue(number))
          read += try scene.drain(reader)
        }
        if answer == nil {
          try late.send(.continue)
          #expect(try late.answer() == "done")
        }
        read += try scene.drain(reader)
        func comment() -> Comment { "before call \(step): \(read), \(scene.directory.listing)" }
        #expect(read.count == 6 && Set(read) == [0, 1, 2, 10, 11, 12], comment())
        #expect(read.filter { $0 < 10 } == [0, 1, 2] && read.filter { $0 > 9 } == [10, 11, 12])
        return answer == nil
      }
    }

    @Test(
      "has each message read once if a subscriber is killed before any step; a repetition is marked",
      arguments: TriedSteps.shares)
    func subscriberKilled(share: Int) throws {
      try TriedSteps.each(of: share, moreThan: 60) { step in
        let scene = try LogScene()
        try scene.append(0..<3)
        let notes = scene.directory.path + "/read"
        let wasKilled = try scene.participant().dies(of: "die \(step) log-drain l a \(notes)")
        let before = try scene.noted(notes)
        #expect(try scene.participant().ask("log-drain l a \(notes)") == "done")
        let all = try scene.noted(notes)
        let comment: Comment = "before call \(step): \(all)"
        check(all, 0..<3, repeats: wasKilled ? 1 : 0, comment)
        #expect(all.dropFirst(before.count + 1).allSatisfy { !$0.contains("again") }, comment)
        return wasKilled
      }
    }

    @Test(
      "has each message read once if a subscriber is stopped before any step, and is replaced",
      arguments: TriedSteps.shares)
    func subscriberStopped(share: Int) throws {
      try TriedSteps.each(of: share, moreThan: 60) { step in
        let scene = try LogScene()
        try scene.append(0..<3)
        let notes = scene.directory.path + "/read"
        let late = try scene.participant()
        let answer = try stopped(late, "stop \(step) log-drain l a \(notes)")
        #expect(try scene.participant().ask("log-drain l a \(notes)") == "done")
        let before = try scene.noted(notes)
        var last = answer
        if answer == nil {
          try late.send(.continue)
          last = try late.answer()
        }
        let all = try scene.noted(notes)
        let comment: Comment = "before call \(step): \(last ?? ""), \(all)"
        // It may have had one in its hands, which the other one got marked.
        check(before, 0..<3, repeats: 1, comment)
        #expect(all.count <= before.count + 1, comment)
        if all.count > before.count, let late = all.last {
          #expect(before.contains { $0[0] == late[0] && $0.contains("again") }, comment)
        }
        return answer == nil
      }
    }

    @Test(
      "is read whole from its beginning if its first messages come before any step of finding it",
      arguments: [LogStart.beginning, .date(.distantPast)])
    func begun(start: LogStart) throws {
      let scene = try LogScene()
      var (step, steps) = (0, 1)
      while step < steps {
        let log = scene.container.log("\(step)")
        try log.setBounds(.standard)
        let plan = Faults.Plan.acting(before: step) { [writer = scene.container.log(log.name)] in
          for number in 0..<2 { try writer.append(.init(number)) }
        }
        let reader = try Faults.$plan.withValue(plan) { try log.read(from: start) }
        #expect(try scene.drain(reader) == [0, 1], "before call \(step)")
        (step, steps) = (step + 1, plan.calls)
      }
      #expect(step > 8)
    }

    /// Checks that each was read, in the order, and again only if marked.
    private func check(
      _ all: [[Substring]], _ expected: Range<Int>, repeats: Int, _ comment: Comment
    ) {
      let fresh = all.filter { !$0.contains("again") }.compactMap { Int($0[1]) }
      #expect(Set(fresh).count == fresh.count, comment)
      let read = all.compactMap { Int($0[1]) }
      #expect(Set(read) == Set(expected) && read == read.sorted(), comment)
      #expect(read.count <= expected.count + repeats, comment)
    }

    // MESSAGES=5000 sets the number of each writer.
    @Test(
      "is read once by two subscribers that are killed, while a writer is killed and one stopped")
    func everything() throws {
      let each = Program.environment("MESSAGES").flatMap { Int($0) } ?? 150
      let scene = try LogScene()
      let writers = try (0..<4).map { _ in try scene.participant() }
      for (index, writer) in writers.enumerated() {
        let notes = scene.directory.path + "/appended\(index)"
        try writer.tell("log-append l \(index * 1_000_000) \(each) \(notes)")
      }
      let names = ["a", "b"]
      var readers = try names.map { name in
        let reader = try scene.participant()
        try reader.tell("log-follow l \(name) -1 \(scene.directory.path)/read-\(name)")
        return reader
      }
      func reach(_ part: Double) throws {
        for name in names {
          try eventually("\(name) has read \(part)", within: .seconds(100)) {
            try Double(scene.noted(scene.directory.path + "/read-" + name).count)
              >= Double(each * 4) * part
          }
        }
      }
      var kills = 0
      for part in [0.1, 0.2, 0.3] {
        try reach(part)
        for (index, name) in names.enumerated() {
          try readers[index].end()
          kills += 1
          readers[index] = try scene.participant()
          try readers[index].tell("log-follow l \(name) -1 \(scene.directory.path)/read-\(name)")
        }
      }
      try writers[0].end()
      try writers[1].send(.stop)
      try writers[1].waitUntilStopped()
      try reach(0.4)
      try writers[1].send(.continue)
      for writer in writers.dropFirst() {
        #expect(try writer.answer(within: .seconds(100)) == "done")
      }
      let end = try scene.log.append(-1)
      for reader in readers { #expect(try reader.answer(within: .seconds(100)) == "done") }
      #expect(try scene.numbers() == Array(1...end))
      let appended = try (0..<4).reduce(0) {
        try $0 + scene.noted(scene.directory.path + "/appended\($1)").count
      }
      #expect((appended + 1...appended + 2).contains(end), "one was killed, perhaps after its step")
      for name in names {
        let read = try scene.noted(scene.directory.path + "/read-" + name)
        let fresh = read.filter { !$0.contains("again") }.compactMap { Int($0[0]) }
        #expect(Set(fresh).count == fresh.count, "one came twice, unmarked")
        let numbers = read.compactMap { Int($0[0]) }
        #expect(Set(numbers) == Set(1...end) && numbers == numbers.sorted())
        #expect(numbers.count <= end + kills, "one for each that was killed")
        for writer in 0..<4 {
          let own = read.compactMap { Int($0[1]) }.filter { $0 >= 0 && $0 / 1_000_000 == writer }
          #expect(own == own.sorted(), "in the order of their writer")
        }
      }
      print("\(end) messages, read by two subscribers through \(kills) kills")
    }
  }
#endif
