#if DEBUG
  import Synchronization
  import Testing
  import Wormhole
  import WormholeSystem
  import WormholeTestSupport

  @testable import WormholeCommand

  @Suite("Entries that another program answers", .blocking)
  struct AnsweredEntriesTests {
    private final class Said: Sendable { let text = Mutex("") }

    private let said = Said()
    private let session: Session
    private let worker: PlainConsumer
    private let answers: AnsweredEntries

    init() throws {
      let said = said
      let environment = CommandEnvironment(
        variable: { _ in nil }, writeStandardOutput: { _ in },
        writeStandardError: { bytes in
          said.text.withLock { $0 += String(decoding: bytes, as: UTF8.self) }
        })
      session = try Session()
      let queue = try SharedContainer(location: session.container).queue("jobs")
      let sender = try queue.sender("test")
      for number: Int64 in [1, 2] { try sender.enqueue(.integer(number)) }
      worker = try queue.work(until: soon)
      let arguments = try Invocations().arguments("queue", "take", "jobs", "--ack", "--follow")
      answers = AnsweredEntries(of: worker, arguments, environment)
    }

    private func next() throws -> PlainEntry { try #require(try answers.next(until: soon)) }

    /// It used to be lost until the process ended, and then done again.
    @Test("can be answered again if an answer failed because of something that passes")
    func failedAnswer() throws {
      let entry = try next()
      answers.add(entry)
      let plan = Faults.Plan { _, _ in .fail(.tooManyOpenFiles) }
      for answer in ["", " retry torn", " fail torn"] {
        Faults.$plan.withValue(plan) { answers.answer("\(entry.id)\(answer)") }
      }
      let heard = said.text.withLock { $0 }
      #expect(heard.split(separator: "still waits for an answer").count == 4, "\(heard)")
      answers.answer("\(entry.id)")
      #expect(said.text.withLock { $0 } == heard)
      #expect(try next().payload == .integer(2))
      worker.close()
      #expect(try session.shell("wormhole queue list jobs --json | wc -l").output == "1\n")
    }

    @Test("are gone if an answer failed because another process has them")
    func lost() throws {
      let entry = try next()
      answers.add(entry)
      let removal = try session.shell("rm -r $C/queues")
      for _ in 1...2 { answers.answer("\(entry.id)") }
      let heard = said.text.withLock { $0 }
      #expect(!heard.contains("still waits"), "\(heard) \(removal)")
      #expect(heard.contains("is not an entry that waits for an answer"), "\(heard)")
    }

    /// ```
    /// the abandoned call     the main thread
    /// waits for room         takes no more
    ///                        gets the last answer
    /// ends
    /// ```
    /// It used to take another entry, which nobody printed, and whose answer was waited for.
    @Test("are no more after a signal: an answer makes no room for another one")
    func abandonedCall() throws {
      let entry = try next()
      answers.add(entry)
      answers.takeNoMore()
      answers.answer("\(entry.id)")
      #expect(try answers.next(until: soon) == nil)
      worker.close()
      let rest = try session.shell(
        "wormhole queue take jobs --details | grep -o '\"redelivery\":[a-z]*'")
      #expect(rest.output == "\"redelivery\":false\n", "\(rest)")
    }

    /// It said that no entry had come in time.
    @Test("are found without waiting, however many others have expired before")
    func behindExpired() throws {
      for _ in 1...2 { try next().acknowledge() }
      let sender = try worker.queue.sender("test")
      for _ in 1...150 { try sender.enqueue("dead", expires: .zero) }
      try sender.enqueue("live")
      // A look at so many takes longer than one may.
      let slow = Faults.Plan { call, _ in
        if call == .unlinkat { pauseThread(.milliseconds(10)) }
        return .proceed
      }
      let entry = try Faults.$plan.withValue(slow) { try answers.next(until: .now) }
      #expect(entry?.payload == "live")
      #expect(throws: ExitStatus.deadline) { try answers.next(until: .now) }
    }

    @Test("wait for an answer from the moment when they are printed, not when they are taken")
    func unprinted() throws {
      answers.answer("\(try next().id)")
      let heard = said.text.withLock { $0 }
      #expect(heard.contains("is not an entry that waits for an answer"), "\(heard)")
    }
  }
#endif
