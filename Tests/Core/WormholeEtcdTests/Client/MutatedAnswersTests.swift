import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeEtcd

/// What is called while one of the answers is wrong.
private struct Operation: Sendable {
  let name: String
  let body: @Sendable (SharedContainer, EtcdContainer) throws -> Void

  init(_ name: String, _ body: @escaping @Sendable (SharedContainer, EtcdContainer) throws -> Void)
  {
    self.name = name
    self.body = body
  }

  static func all(mailbox: String) -> [Operation] {
    [
      Operation("read") { container, _ in _ = try container.value("v").read() },
      Operation("replace") { container, etcd in
        try container.value("new").replace(with: 1, until: etcd.callDeadline)
      },
      Operation("replace for a time") { container, etcd in
        try container.value("v").replace(
          with: 1, expiresAfter: .seconds(60), until: etcd.callDeadline)
      },
      Operation("update") { container, etcd in
        try container.value("v").update(until: etcd.callDeadline) {
          $0 = .integer(Int64($0?.intValue ?? 0) + 1)
        }
      },
      Operation("remove") { container, etcd in
        _ = try container.value("w").remove(until: etcd.callDeadline)
      },
      Operation("update several") { container, etcd in
        try container.update(["v", "w", "x"], until: etcd.callDeadline) { values in values["x"] = 2
        }
      },
      Operation("post") { container, _ in try container.notification("n").post() },
      Operation("state") { container, _ in _ = try container.notification("n").state() },
      Operation("send") { container, _ in
        let id = try container.queue("q").sender("a").enqueue(1, key: "k", keepsReceipt: true)
        _ = try container.queue("q").sender("a").status(of: id)
        _ = try container.queue("q").sender("a").receipts()
      },
      Operation("look through a queue") { container, etcd in
        _ = try container.queue("q").outstanding()
        _ = try container.queue("q").cancelAll(until: etcd.callDeadline)
        _ = try container.queue("q").failures()
      },
      Operation("members") { container, _ in
        _ = try container.presence("p").members()
        _ = try container.presence("p").status()
      },
      Operation("post into a mailbox") { container, _ in
        _ = try container.mailboxWriter(to: mailbox)?.post(["a": 1])
      },
      Operation("names") { container, _ in _ = try container.valueIdentifiers() },
      Operation("pages") { _, etcd in
        // All keys of the etcd that tests share would be thousands.
        _ = try etcd.client.read(etcd.keys, pageSize: 2, until: etcd.callDeadline)
      },
      Operation("lease") { _, etcd in
        let lease = try etcd.client.grantLease(lifetime: .seconds(60), until: etcd.callDeadline)
        // etcd knows the number of the recorded one only, so this lease has ended.
        _ = try etcd.client.keepLeaseAlive(lease, until: etcd.callDeadline)
        _ = try etcd.client.lifetime(ofLease: lease, until: etcd.callDeadline)
        try etcd.client.revokeLease(lease, until: etcd.callDeadline)
      },
      Operation("cluster") { _, etcd in
        _ = try etcd.client.members(until: etcd.callDeadline)
        _ = try etcd.client.alarms(until: etcd.callDeadline)
        _ = try etcd.client.count(.prefix([]), until: etcd.callDeadline)
        _ = try etcd.client.status(of: etcd.client.endpoints[0], until: etcd.callDeadline)
      },
    ]
  }
}

/// Recorded answers of etcd are changed in one place, and given to the operations.
///
/// `MUTATED_ANSWERS=1000000` changes so many; `MUTATED_ANSWERS_SEED` and `MUTATED_ANSWERS_FIRST` try the
/// same again.
@Suite(
  "Answers that are not quite etcd's", .blocking,
  .needsEtcd)
struct MutatedAnswersTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private struct Recorded: Sendable {
    let operation: Operation
    let answers: [HTTPAnswer]
  }

  private func location() throws -> EtcdLocation {
    try #require(try TestEngine.etcd.location(of: directory.path))
  }

  private func container(
    _ transport: any EtcdTransport, _ name: String, until deadline: ContinuousClock.Instant
  ) throws -> (SharedContainer, EtcdContainer) {
    let etcd = try EtcdContainer.unopened(try location(), through: transport)
      .with(CallLimit(deadline))
    return (try SharedContainer(etcd, companion: "\(directory.path)/\(name)"), etcd)
  }

  private func record() throws -> [Recorded] {
    let container = try SharedContainer(
      etcd: try location(), companion: directory.path + "/recorded")
    for name in ["v", "w"] { try container.value(name).replace(with: 1) }
    try container.queue("q").sender("a").enqueue(1, keepsReceipt: true)
    let present = try container.presence("p").enter()
    let mailbox = try container.makeMailbox { _ in }
    return try withExtendedLifetime((present, mailbox)) {
      try Operation.all(mailbox: mailbox.address).map { operation in
        try record(operation)
      }
    }
  }

  /// Records one that went well: on a busy machine etcd may take too long for an answer.
  private func record(_ operation: Operation) throws -> Recorded {
    let deadline = soon
    while true {
      let recorder = AnswerRecorder()
      let (container, etcd) = try container(recorder, "recorder", until: deadline)
      do {
        try operation.body(container, etcd)
        return Recorded(operation: operation, answers: recorder.answers)
      } catch {
        guard .now < deadline else { throw error }
      }
    }
  }

  /// Tries one change.
  ///
  /// - Returns: How long after the deadline of its calls it asked for the last time.
  private func attempt(
    _ number: Int, _ seed: TestSeed, _ all: [Recorded], _ thread: Int
  ) throws -> Duration {
    var generator = SeededGenerator(seed: seed.value &+ UInt64(number))
    // A number that follows another one begins the same way otherwise.
    _ = generator.next()
    let recorded = all[Int(generator.next() % UInt64(all.count))]
    let place = Int.random(in: 0..<recorded.answers.count, using: &generator)
    let answer = recorded.answers[place]
    var content = answer.content
    repeat {
      content = MutableJSON(content).mutated(by: &generator)
    } while Bool.random(using: &generator) && !content.isEmpty
    let status = Int.random(in: 0..<20, using: &generator) == 0 ? 503 : answer.status
    // Each of these takes a second.
    let isRepeated = Int.random(in: 0..<100, using: &generator) == 0
    let liar = Liar(
      recorded.answers, at: place, HTTPAnswer(status: status, content: content),
      then: isRepeated ? .repeated : Bool.random(using: &generator) ? .recorded : .ended)
    let (container, etcd) = try container(liar, "\(thread)", until: .now)
    // The calls have a second from each one's beginning.
    let deadline = ContinuousClock.now + .seconds(1)
    do {
      try recorded.operation.body(container, etcd)
    } catch let error as WormholeError {
      #expect(!error.reason.isEmpty)
    } catch let error as EtcdError {
      #expect(!error.reason.isEmpty)
    }
    return (liar.lastQuestion ?? deadline) - deadline
  }

  /// Returns a line of this process's status, in KiB.
  private func memory(_ name: String) throws -> Int {
    let status = try FileDescriptor.open("/proc/self/status", .readOnly)
      .readToEnd(expectedBytes: 0, maximumBytes: 65_536)
    let line = String(decoding: status, as: UTF8.self).split(separator: "\n")
      .first { $0.hasPrefix(name) }
    return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
  }

  @Test("never end the process, and no call lasts beyond its deadline")
  func mutations() throws {
    let count = Program.environment("MUTATED_ANSWERS").flatMap { Int($0) }
    let first = Program.environment("MUTATED_ANSWERS_FIRST").flatMap { Int($0) } ?? 0
    let seed = TestSeed.next("MUTATED_ANSWERS_SEED")
    let all = try record()
    #expect(all.allSatisfy { !$0.answers.isEmpty })
    // Threads, and what they keep, are there from the beginning.
    if count != nil { for number in 0..<100 { _ = try attempt(number, seed, all, 0) } }
    let before = try memory("VmRSS")
    let next = Atomic(first)
    let latest = Mutex(Duration.zero)
    let group = DispatchGroup()
    for thread in 0..<8 {
      DispatchQueue(label: "attempts").async(group: group) {
        while true {
          let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
          guard number < first + (count ?? 200) else { return }
          do {
            let late = try attempt(number, seed, all, thread)
            latest.withLock { $0 = max($0, late) }
          } catch {
            Issue.record(error, "MUTATED_ANSWERS_FIRST=\(number)")
          }
          if number.isMultiple(of: 100_000), number > 0 { print("\(number) answers") }
        }
      }
    }
    group.wait()
    let late = latest.withLock { $0 }
    // On a busy machine a thread gets its turn late; what never ends is later.
    #expect(late < (count == nil ? .seconds(60) : .seconds(2)))
    guard let count else { return }
    let grown = try memory("VmHWM") - before
    print(
      "\(count) answers; the last question \(late) after the deadline; \(grown) KiB more than before"
    )
  }
}
