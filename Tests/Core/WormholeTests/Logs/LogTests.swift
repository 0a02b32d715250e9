import FoundationEssentials
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A log", .blocking, .bothEngines)
struct LogTests {
  private let scene: LogScene
  private var log: PlainLog { scene.log }

  init() throws { scene = try LogScene() }

  // MARK: Reading

  @Test("gives every subscriber every message once, in their order, across restarts")
  func once() throws {
    #expect(try scene.append(0..<3) == [1, 2, 3])
    #expect(try scene.read(as: "a") == [0, 1, 2])
    try scene.append(3..<5)
    #expect(try scene.read(as: "a") == [3, 4])
    #expect(try scene.read(as: "b") == [0, 1, 2, 3, 4])
    #expect(try scene.read(as: "a") == [])
    // Another object knows nothing of this one's memory.
    let other = try scene.directory.container().log("l")
    #expect(try other.append(5) == 6)
    #expect(try scene.append(6..<8) == [7, 8])
    #expect(try scene.read(as: "a") == [5, 6, 7])
    #expect(try scene.read() == Array(0..<8))
    #expect(try log.subscribers().allSatisfy { $0.next == ($0.name == "a" ? 9 : 6) })
  }

  @Test("wakes a reader that waits, as a thread and as a task, in a loop that ends with its reader")
  func waiting() async throws {
    let reader = try await log.subscribe("a")
    let first = Task { try await reader.next() }
    try eventually("it waits") { reader.isAwaited }
    try await log.append(7)
    #expect(try await first.value.payload == 7)
    let rest = Task {
      var all: [Int] = []
      for try await message in reader.messages() {
        all.append(message.payload.intValue ?? -1)
        if all.count == 3 { reader.close() }
      }
      return all
    }
    for number in 8..<11 { try await log.append(PropertyListValue(number)) }
    #expect(try await rest.value == [8, 9, 10])
    let waiter = try await log.read(from: .end)
    let cancelled = Task { try await waiter.next() }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    await #expect(throws: WormholeError.self) { try await reader.next() }
  }

  @Test("counts a message as read when the next is asked for, or when it is acknowledged")
  func acknowledging() throws {
    try scene.append(0..<3)
    func first() throws -> LogMessage<PropertyListValue>? {
      let reader = try log.subscribe("a")
      defer { reader.close() }
      return try reader.next(until: .now)
    }
    let fresh = try #require(try first())
    // It has no message in its hands.
    let idle = try log.subscribe("a")
    try idle.acknowledge(durability: .durable)
    idle.close()
    let again = try #require(try first())
    #expect(!fresh.isRedelivery && again.isRedelivery && again.number == 1 && again.missed == 0)
    let reader = try log.subscribe("a")
    #expect(try reader.next(until: .now)?.isRedelivery == true)
    try reader.acknowledge()
    try reader.acknowledge()
    reader.close()
    let second = try #require(try first())
    #expect(!second.isRedelivery && second.number == 2)
    #expect(try scene.read(as: "a") == [1, 2])
  }

  @Test(
    "is replayed from a number, a date, the beginning, or only followed from now on",
    .onlyDirectories("it sets the times of files"))
  func replay() throws {
    try scene.append(0..<6)
    for number in 1...6 {
      try FileDescriptor.open(scene.file(number), .readOnly)
        .setModified(seconds: Int64(number * 100), nanoseconds: 0)
    }
    #expect(try scene.read(from: .number(4)) == [3, 4, 5])
    #expect(try scene.read(from: .number(99)) == [])
    #expect(try scene.read(from: .date(Date(timeIntervalSince1970: 250))) == [2, 3, 4, 5])
    #expect(try scene.read(from: .date(Date())) == [])
    #expect(try scene.read(from: .end) == [])
    let reader = try log.subscribe("a", from: .end)
    #expect(try scene.drain(reader) == [])
    try reader.seek(to: .number(5))
    let message = try #require(try reader.next(until: .now))
    #expect(message.number == 5 && message.date == Date(timeIntervalSince1970: 500))
    #expect(!message.isRedelivery && message.missed == 0)
    try reader.seek(to: .beginning)
    reader.close()
    #expect(try scene.read(as: "a") == Array(0..<6))
  }

  @Test("keeps typed content")
  func typed() throws {
    struct Sale: Codable, Equatable { var film: String }
    try log.append(PropertyListValue(encoding: Sale(film: "Metropolis")), durability: .durable)
    let message = try #require(try log.read().next(until: .now))
    #expect(try message.payload.decode(as: Sale.self) == Sale(film: "Metropolis"))
    #expect(abs(message.date.timeIntervalSinceNow) < 600)
    #expect(message.publisher?.processID == Program.processID)
    // Content that is written before the lease is taken.
    let large = longText(100_000)
    #expect(try log.append(.string(large)) == 2)
    #expect(try log.read(from: .number(2)).next(until: .now)?.payload == .string(large))
  }

  @Test("lets one process at a time read for a subscriber, and names it")
  func exclusive() throws {
    try scene.append(0..<3)
    let late = try scene.participant()
    #expect(try late.ask("log-subscribe l a") == "done")
    #expect(try late.ask("log-next l") == "1 0")
    let error = #expect(throws: WormholeError.self) { try log.subscribe("a", until: .now) }
    #expect(error?.code == .timedOut && error?.holder?.processID == late.processID)
    #expect(try scene.read(as: "b") == [0, 1, 2])
    try late.send(.stop)
    try late.waitUntilStopped()
    let reader = try log.subscribe("a")
    let again = try #require(try reader.next(until: .now))
    #expect(again.number == 1 && again.isRedelivery)
    try late.send(.continue)
    #expect(try late.ask("log-acknowledge l").hasPrefix("error leaseLost"))
    #expect(try late.ask("log-next l").hasPrefix("error leaseLost"))
    #expect(try scene.drain(reader) == [1, 2])
    reader.close()
    #expect(try late.ask("log-subscribe l a") == "done")
    #expect(try late.ask("log-next l") == "nothing")
  }

  @Test("delivers nothing to a process that was replaced, not even what waits to be repeated")
  func replaced() throws {
    try scene.append(0..<1)
    let first = try log.subscribe("a")
    #expect(try first.next(until: .now)?.number == 1)
    first.close()
    // It finds that position, and is stopped before it asks for the message.
    let late = try scene.participant()
    #expect(try late.ask("log-subscribe l a") == "done")
    try late.send(.stop)
    try late.waitUntilStopped()
    let second = try log.subscribe("a")
    #expect(try second.next(until: .now)?.isRedelivery == true)
    try second.acknowledge()
    try late.send(.continue)
    #expect(try late.ask("log-next l").hasPrefix("error leaseLost"))
  }

  @Test("forgets a subscriber, which is a new one then")
  func forgetting() throws {
    try scene.append(0..<2)
    #expect(try scene.read(as: "a/ü") == [0, 1])
    #expect(try log.subscribers() == [LogSubscriber(name: "a/ü", next: 3, behind: 0)])
    #expect(try log.forget(subscriber: "a/ü") && !log.forget(subscriber: "a/ü"))
    #expect(try log.subscribers().isEmpty)
    #expect(try scene.read(as: "a/ü") == [0, 1])
  }

  // MARK: Bounds

  @Test("keeps as many messages as its bounds say, and reports to a slow subscriber what it missed")
  func bounded() throws {
    try log.setBounds(.init(messages: 32, bytes: 1 << 20))
    try scene.append(0..<1)
    let reader = try log.subscribe("slow")
    #expect(try reader.next(until: .now)?.number == 1)
    try scene.append(1..<100)
    let kept = try scene.numbers()
    #expect((32...34).contains(kept.count) && kept.last == 100)
    let next = try #require(try reader.next(until: .now))
    let first = try #require(kept.first)
    #expect(next.number == first && next.missed == first - 2, "one of them was read")
    let second = try #require(try reader.next(until: .now))
    #expect(second.missed == 0 && second.number == next.number + 1)
    #expect(try log.read(from: .number(1)).next(until: .now)?.missed == first - 1)
    #expect(try log.read().next(until: .now)?.missed == 0)
    // They agree: another process's bounds hold here.
    try scene.directory.container().log("l").setBounds(.init(messages: 2, bytes: 1 << 20))
    #expect(try scene.numbers() == [99, 100])
    #expect(try log.bounds().messages == 2)
    try scene.append(100..<101)
    #expect(try scene.numbers() == [100, 101])
  }

  /// The second append used to trap, in every process.
  @Test("has no bounds with the largest ones, and none of its numbers overflow")
  func unbounded() throws {
    try log.setBounds(.init(messages: .max, bytes: .max, age: .seconds(60)))
    try scene.append(0..<3)
    #expect(try scene.numbers() == [1, 2, 3])
    var state = try #require(LogState(["id": "x", "first": 1, "head": 1]))
    state.setBounds = .init(messages: .max, bytes: .max, age: .seconds(60))
    #expect(!state.isTrimDue(at: 2, appended: 1, size: 1) || state.oldest == 0)
    var content = state.content
    content["oldest"] = .integer(.min)
    #expect(try #require(LogState(content)).isTrimDue(at: 1, appended: 1, size: 1))
  }

  @Test("keeps its bound of bytes when a new process appends each message")
  func bytesOfProcesses() throws {
    try log.setBounds(.init(messages: 1_000, bytes: 10_000))
    for _ in 0..<30 {
      let other = try PlainLog(container: scene.directory.container(), name: "l")
      try other.append(.string(String(repeating: "x", count: 900)))
    }
    let kept = try scene.numbers()
    #expect((10...11).contains(kept.count) && kept.last == 30, "\(kept)")
  }

  @Test("keeps as many bytes as its bounds say, and refuses a message that exceeds them alone")
  func bytes() throws {
    try log.setBounds(.init(messages: 1_000, bytes: 10_000))
    for _ in 0..<30 { try log.append(.string(String(repeating: "x", count: 900))) }
    let kept = try scene.numbers()
    #expect((10...11).contains(kept.count) && kept.last == 30, "\(kept)")
    let error = #expect(throws: WormholeError.self) {
      try log.append(.string(longText(10_001)))
    }
    #expect(error?.code == .tooLarge)
    #expect(try log.append(1) == 31)
  }

  @Test(
    "takes messages away at a certain age, with the next one or with a sweep",
    .onlyDirectories("it sets the times of files"))
  func age() throws {
    try log.setBounds(.init(messages: 1_000, bytes: 1 << 20, age: .seconds(3_600)))
    try scene.append(0..<4)
    func age(_ numbers: ClosedRange<Int>) throws {
      for number in numbers {
        try FileDescriptor.open(scene.file(number), .readOnly)
          .setModified(seconds: realTime().seconds - 7_200, nanoseconds: 0)
      }
    }
    try age(1...2)
    // The age of the oldest is looked at again after a sixteenth of the bound; a sweep looks at once.
    let swept = try scene.container.sweep()
    #expect(swept.failures.isEmpty && swept.removed == [1, 2].map { scene.file($0) })
    try age(3...4)
    #expect(try scene.container.sweep().removed == [3, 4].map { scene.file($0) })
    #expect(try scene.numbers().isEmpty)
    #expect(try log.append(9) == 5, "numbers go on when nothing is left")
    #expect(try log.read(from: .number(1)).next(until: .now)?.missed == 4)
  }

  // MARK: Inspection

  @Test(
    "is reported with its subscribers, and swept when nothing is in it",
    .onlyDirectories("it looks at files"))
  func inspection() throws {
    try log.setBounds(.init(messages: 3, bytes: 1 << 20))
    try scene.append(0..<5)
    let reader = try log.subscribe("a")
    _ = try reader.next(until: .now)
    let report = try scene.container.report()
    let found = try #require(report.names.logs.first)
    #expect(found.name == "l" && found.messages == 3 && found.first == 3 && found.last == 5)
    #expect(found.bytes > 0 && found.newest != nil && found.bounds.messages == 3)
    #expect(found.subscribers.map(\.subscriber) == [LogSubscriber(name: "a", next: 3, behind: 3)])
    #expect(found.subscribers.first?.process?.processID == Program.processID)
    #expect(report.leftovers.isEmpty && report.foreignEntries.isEmpty && report.failures.isEmpty)
    reader.close()
    try scene.write("", to: scene.file(1))
    #expect(try scene.container.report().leftovers.map(\.path) == [scene.file(1)])
    let swept = try scene.container.sweep()
    #expect(swept.failures.isEmpty && swept.removed == [scene.file(1)])
    #expect(try scene.read(as: "a") == [2, 3, 4])
    // A log with bounds stays; one without is removed with the positions of its subscribers.
    let other = scene.container.log("other")
    let subscriber = try other.subscribe("b")
    subscriber.close()
    #expect(try Set(scene.container.logNames()) == ["l", "other"])
    // A child that another test is starting shares a lock for a moment: what it is on is kept then.
    try eventually("it is swept") {
      _ = try scene.container.sweep()
      return try scene.container.logNames() == ["l"]
        && scene.container.own.valueIdentifiers().count == 1
    }
  }
}
