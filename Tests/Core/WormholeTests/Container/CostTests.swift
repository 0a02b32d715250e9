#if DEBUG
  import Testing
  import Wormhole
  import WormholeSystem
  import WormholeTestSupport
  import WormholeToolkit

  /// The system calls of each operation in steady state: nobody else uses the name, and the same
  /// operation was done a moment ago. Counts are the same on a busy machine.
  @Suite("The cost of an operation", .blocking)
  struct CostTests {
    let directory: TemporaryDirectory
    let container: SharedContainer

    init() throws {
      directory = try TemporaryDirectory()
      container = try directory.container()
    }

    /// The fewest calls of some repetitions: now and then one waits for the disk, or looks whether the
    /// container's path still names it.
    private func calls(_ operation: () throws -> Void) throws -> [SystemCall] {
      var fewest: [SystemCall]?
      for _ in 0..<20 {
        let calls = Heard<SystemCall>()
        let plan = Faults.Plan { call, _ in
          calls.add(call)
          return .proceed
        }
        try Faults.$plan.withValue(plan, operation: operation)
        if calls.all.count < fewest?.count ?? .max { fewest = calls.all }
      }
      return try #require(fewest)
    }

    /// On an older kernel the times of a directory do not show whether another process was holder.
    private static let staysWarm = FileSystemKind(magic: 0x0102_1994).showsEachChange

    @Test("A publication takes 10 calls, an update 14, a read 4", .enabled(if: staysWarm))
    func values() throws {
      let value = container.value("k")
      let publication = try calls { try value.replace(with: 1) }
      let lease: [SystemCall] = [.flock, .fstat, .openat]
      let publishing: [SystemCall] = [
        .write, .futimens, .close, .renameat2, .unlinkat, .fstat, .flock,
      ]
      let reading: [SystemCall] = [.openat2, .fstat, .read, .close]
      #expect(publication == lease + publishing)
      let update = try calls { try value.update { $0 = .integer(($0?.int64Value ?? 0) + 1) } }
      #expect(update == lease + reading + publishing)
      #expect(try calls { _ = try value.read() } == reading)
    }

    @Test("An update of two values in one step takes 78 calls", .enabled(if: staysWarm))
    func twoValues() throws {
      for name in ["a", "b"] { try container.value(name).replace(with: 0) }
      let update = try calls {
        try container.update(["a", "b"]) { values in
          for name in values.keys { values[name] = .integer((values[name]?.int64Value ?? 0) + 1) }
        }
      }
      #expect(update.count == 78, "\(update)")
    }

    @Test("A post takes one call after a post of the same process")
    func posts() throws {
      let notification = container.notification("n")
      #expect(try calls { try notification.post() } == [.renameat])
    }

    @Test("A small message to a live process takes 2 calls")
    func messages() throws {
      let mailbox = try container.makeMailbox { _ in }
      let outlet = try #require(container.mailboxWriter(to: mailbox.address))
      #expect(try calls { _ = try outlet.post(1) } == [.connect, .send])
      withExtendedLifetime(mailbox) {}
    }

    @Test("A sent entry takes 5 calls, and a taken one 6")
    func entries() throws {
      let queue = container.queue("q")
      let sender = try queue.sender("s")
      let consumer = try queue.consume(until: soon)
      #expect(try calls { _ = try sender.enqueue(1) }.count == 5)
      #expect(try calls { try consumer.next(until: .now)?.acknowledge() }.count == 6)
    }
  }
#endif
