#if DEBUG
  import Testing
  import WormholePropertyLists
  import WormholeSystem
  import WormholeTestSupport
  import WormholeToolkit

  @testable import Wormhole
  @testable import WormholeInspection

  /// One use of a name: its primitive, and the state after the use.
  struct NameUse: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let primitive: NameKind.Primitive
    /// Leaves the name empty, except for entries that a sweep may remove.
    let empty: @Sendable (SharedContainer, String) throws -> Void
    /// Uses the name, checks that it was used, and leaves it not empty.
    let use: @Sendable (SharedContainer, String) throws -> Void

    static let all = [
      NameUse(
        testDescription: "a value is replaced", primitive: .value,
        empty: { container, name in
          try container.value(name).replace(with: 0)
          try container.value(name).remove()
        },
        use: { container, name in
          try container.value(name).replace(with: 1)
          #expect(try container.value(name).read() == 1)
          try container.value(name).update { $0 = 2 }
          #expect(try container.value(name).read() == 2)
        }),
      NameUse(
        testDescription: "a notification is posted", primitive: .notification,
        empty: { container, name in
          try container.notification(name).post()
          try age("notifications", container, name)
        },
        use: { container, name in
          let posts = PostFile(root: container.root, name: name)
          let before = try posts.mark()
          try container.notification(name).post()
          let after = try posts.mark()
          #expect(after.marks != before.marks && !after.marks.isEmpty)
        }),
      NameUse(
        testDescription: "a process enters", primitive: .presence,
        empty: { container, name in
          try container.presence(name).enter().close()
          try age("presence", container, name)
        },
        use: { container, name in
          let registration = try container.presence(name).enter()
          #expect(try container.presence(name).members().map(\.id) == [registration.id])
          registration.close()
        }),
      NameUse(
        testDescription: "a process enters exclusively", primitive: .presence,
        empty: { container, name in
          try container.presence(name).enterExclusively().close()
          try age("presence", container, name)
        },
        use: { container, name in
          let registration = try container.presence(name).enterExclusively()
          try registration.confirm()
          #expect(try container.presence(name).place.roleID() == registration.id)
          registration.close()
        }),
      NameUse(
        testDescription: "entries are sent", primitive: .queue,
        empty: { container, name in
          _ = try container.queue(name).consume(until: soon).next(until: .now)
        },
        use: { container, name in
          let sender = try container.queue(name).sender("a")
          let ids = try [
            sender.enqueue(1), sender.enqueue(2, key: "k", keepsReceipt: true), sender.enqueue(3),
          ]
          #expect(try sender.cancel(ids[2]))
          let consumer = try container.queue(name).consume(until: soon)
          for number in 1...2 {
            let entry = try consumer.next(until: .now)
            #expect(entry?.payload == .integer(Int64(number)))
            try entry?.acknowledge()
          }
          #expect(try consumer.next(until: .now) == nil)
          consumer.close()
          #expect(try sender.outcomes().map(\.status) == [.cancelled])
          for id in ids { try sender.forget(id) }
        }),
      NameUse(
        testDescription: "a process consumes", primitive: .queue,
        empty: { container, name in
          _ = try container.queue(name).consume(until: soon).next(until: .now)
        },
        use: { container, name in
          let consumer = try container.queue(name).consume(until: soon)
          try container.queue(name).sender("a").enqueue(1)
          let entry = try consumer.next(until: soon)
          #expect(entry?.payload == 1)
          try entry?.fail("no")
          consumer.close()
          let sender = try container.queue(name).sender("a")
          for outcome in try sender.outcomes() { try sender.forget(outcome.id) }
        }),
      NameUse(
        testDescription: "messages are appended and read", primitive: .log,
        empty: { container, name in try container.log(name).subscribe("s").close() },
        use: { container, name in
          let log = container.log(name)
          let first = try log.append(1)
          #expect(try log.append(2) == first + 1)
          let reader = try log.subscribe("s")
          for number in 1...2 {
            #expect(try reader.next(until: .now)?.payload == PropertyListValue(number))
          }
          try reader.acknowledge()
          #expect(try reader.next(until: .now) == nil)
          reader.close()
        }),
    ]

    /// Ages a part, as if nothing had happened under the name since the day before yesterday.
    private static func age(_ part: String, _ container: SharedContainer, _ name: String) throws {
      let path = "\(container.root.path)/\(part)/\(EncodedName(name).component)"
      try FileDescriptor.open(path, [.readOnly, .directory])
        .setModified(seconds: realTime().seconds - 2 * 24 * 60 * 60, nanoseconds: 0)
    }
  }

  @Suite("A name that is swept", .blocking)
  struct NameSweepStepTests {
    private static let names = ["k", String(repeating: "long/", count: 100)]

    private func sweep(_ container: SharedContainer, _ name: String, _ use: NameUse) throws -> Bool
    {
      let isGone = try container.removeEmptyName(name, use.primitive)
      if use.primitive == .queue { _ = try container.removeEmptyName(name, .consumer) }
      return isGone
    }

    @Test("before any step of a use loses nothing of that use", arguments: NameUse.all, names)
    func beforeEachStep(use: NameUse, name: String) throws {
      let directory = try TemporaryDirectory()
      let container = try directory.container()
      let counting = Faults.Plan { _, _ in .proceed }
      try use.empty(container, name)
      try Faults.$plan.withValue(counting) { try use.use(container, name) }
      #expect(counting.calls > 5)
      for place in TriedSteps.of(counting.calls, atMost: 15) {
        try use.empty(container, name)
        let plan = Faults.Plan.acting(before: place) { _ = try sweep(container, name, use) }
        do {
          try Faults.$plan.withValue(plan) { try use.use(container, name) }
        } catch {
          Issue.record("swept before call \(place): \(error)")
        }
      }
    }

    // The advice was to remove a place that another process could have begun to use again.
    @Test("before any step of a look is not taken for foreign", arguments: NameUse.all, names)
    func beforeEachLook(use: NameUse, name: String) throws {
      let directory = try TemporaryDirectory()
      let container = try directory.container()
      func look(_ plan: Faults.Plan) throws -> ContainerReport {
        try use.empty(container, name)
        return try Faults.$plan.withValue(plan) {
          try ContainerInspection(container, ReportScope(.names)).report
        }
      }
      let counting = Faults.Plan { _, _ in .proceed }
      _ = try look(counting)
      for place in TriedSteps.of(counting.calls, atMost: 15) {
        let report = try look(.acting(before: place) { _ = try sweep(container, name, use) })
        let found = report.foreignEntries.map(\.path)
        #expect(found == [] && report.failures.isEmpty, "\(place): \(report.failures)")
      }
    }

    @Test(
      "by a process that is stopped or killed at any step can be used meanwhile and afterwards",
      arguments: NameUse.all)
    func atEveryStep(use: NameUse) throws {
      let directory = try TemporaryDirectory()
      let container = try directory.container()
      let command = "sweep-\(use.primitive.rawValue)"
      try use.empty(container, "counted")
      let counting = try Participant(directory.path)
      let calls = try #require(Int(try counting.ask("calls \(command) counted")))
      try counting.end()
      #expect(calls > 15)
      for place in TriedSteps.of(calls, atMost: 12) {
        for verb in ["stop", "die"] {
          // A name of its own, because the work of a sweep depends on the earlier steps.
          let name = "\(verb)-\(place)"
          try use.empty(container, name)
          let sweeper = try Participant(directory.path)
          try sweeper.tell("\(verb) \(place) \(command) \(name)")
          if verb == "stop" {
            try sweeper.waitUntilStopped()
          } else {
            #expect(try sweeper.wait() == .killed(signal: 9))
          }
          do { try use.use(container, name) } catch {
            Issue.record("\(verb) before call \(place): \(error)")
          }
          guard verb == "stop" else { continue }
          try sweeper.send(.continue)
          // It has removed the name before, or it finds it in use.
          let answer = try sweeper.answer()
          #expect(["true", "false"].contains(answer), "stopped before call \(place): \(answer)")
          do { try use.use(container, name) } catch {
            Issue.record("gone on before call \(place): \(error)")
          }
          try sweeper.end()
        }
      }
    }

    @Test(
      "while it is stopped at any step does not lose the value published since", arguments: names)
    func published(name: String) throws {
      let directory = try TemporaryDirectory()
      let container = try directory.container()
      func empty(_ name: String) throws {
        try container.value(name).replace(with: 0)
        try container.value(name).remove()
      }
      try empty(name)
      let counting = try Participant(directory.path)
      let calls = try #require(Int(try counting.ask("calls sweep-values \(name)")))
      try counting.end()
      for place in TriedSteps.of(calls, atMost: 15) {
        let name = name + "\(place)"
        let value = container.value(name)
        try empty(name)
        let sweeper = try Participant(directory.path)
        try sweeper.tell("stop \(place) sweep-values \(name)")
        try sweeper.waitUntilStopped()
        try value.replace(with: 1)
        if place.isMultiple(of: 2) { try value.remove() }
        try value.update { $0 = 2 }
        try sweeper.send(.continue)
        _ = try sweeper.answer()
        #expect(try value.read() == 2, "stopped before call \(place)")
        #expect(try container.valueIdentifiers().contains(name), "before call \(place)")
        try sweeper.end()
      }
    }
  }
#endif
