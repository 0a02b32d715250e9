import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("A channel", .blocking, .bothEngines)
struct ChannelTests {
  struct Ticket: Codable, Sendable, Equatable {
    var film: String
    var seats: [Int]
  }

  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  @Test("keeps the latest message, of any Codable type, as exactly its property list")
  func latest() async throws {
    let tickets = Channel<Ticket>("tickets", in: container)
    #expect(try await tickets.value.read() == nil)
    try await tickets.publish(Ticket(film: "Metropolis", seats: [7, 8]))
    #expect(try await tickets.value.read() == Ticket(film: "Metropolis", seats: [7, 8]))
    #expect(
      try await container.value("tickets").read() == ["film": "Metropolis", "seats": [7, 8]])
    let number = Channel<Int>("number", in: container)
    try await number.publish(5, durability: .durable)
    #expect(try await container.value("number").read() == 5)
    try await tickets.value.remove()
    #expect(try await tickets.value.read() == nil)
  }

  @Test("names the process that sent a message, and when")
  func publisher() async throws {
    let channel = Channel<Int>("n", in: container)
    let other = try Participant(directory.path)
    let messages = try channel.messages()
    var iterator = messages.makeAsyncIterator()
    #expect(try other.ask("set n 1") == "done")
    #expect(await iterator.next()?.publisher?.processID == other.processID)
    try await channel.publish(2)
    let own = await iterator.next()
    #expect(own?.isOwn == true)
    #expect(own?.publisher?.processID == ProcessIdentity.current.processID)
  }

  @Test("has no latest message when that has expired, and passes the next")
  func expiry() async throws {
    let channel = Channel<Int>("n", in: container)
    let messages = try channel.messages()
    var iterator = messages.makeAsyncIterator()
    try await channel.publish(1, expiresAfter: .seconds(3_600))
    let received = await iterator.next()
    #expect(try received?.message == 1 && received?.expiration != nil)
    try await channel.publish(2, expiresAfter: .zero)
    #expect(try await channel.value.read() == nil)
    try await channel.publish(3)
    #expect(try await iterator.next()?.message == 3)
  }

  @Test("reports a message of another type as an error, and continues with the next")
  func wrongShape() async throws {
    let tickets = Channel<Ticket>("tickets", in: container)
    let messages = try tickets.messages()
    try await container.value("tickets").replace(with: "not a ticket")
    await #expect(throws: WormholeError.self) { try await tickets.value.read() }
    var iterator = messages.makeAsyncIterator()
    let first = await iterator.next()
    #expect(throws: WormholeError.self) { try first?.message }
    try await tickets.publish(Ticket(film: "M", seats: []))
    let second = await iterator.next()
    #expect(try second?.message.film == "M")
  }

  @Test(
    "returns nil without a message, and an error for an unreadable one",
    .onlyDirectories("it puts a directory in the file's place"))
  func absentAndUnreadable() async throws {
    let channel = Channel<Int>("n", in: container)
    let messages = try channel.messages(startsWithCurrent: true)
    let first = Task {
      var iterator = messages.makeAsyncIterator()
      return try await iterator.next()?.message
    }
    for _ in 0..<1_000 { await Task.yield() }
    try await channel.publish(1)
    #expect(try await first.value == 1)
    var iterator = try channel.messages().makeAsyncIterator()
    let path = container.value("n").path
    try removeFile(path)
    try makeDirectory(path)
    let unreadable = await iterator.next()
    #expect(throws: WormholeError.self) { try unreadable?.message }
  }

  @Test("distinguishes a listener's own echo from other senders' messages")
  func provenance() async throws {
    let mine = Channel<Int>("n", in: container)
    let others = Channel<Int>("n", in: container)
    var iterator = try mine.messages().makeAsyncIterator()
    try await mine.publish(1)
    let echo = await iterator.next()
    #expect(try echo?.message == 1)
    #expect(echo?.isOwn == true)
    try await others.publish(2)
    let theirs = await iterator.next()
    #expect(try theirs?.message == 2)
    #expect(theirs?.isOwn == false)
    try await mine.update { $0 = ($0 ?? 0) + 1 }
    let updated = await iterator.next()
    #expect(try updated?.message == 3)
    #expect(updated?.isOwn == true)
    try await mine.publish(4, durability: .durable)
    let durable = await iterator.next()
    #expect(try durable?.message == 4)
    #expect(durable?.isOwn == true)
    let process = try Participant(directory.path)
    #expect(try process.ask("set n 9") == "done")
    let foreign = await iterator.next()
    #expect(try foreign?.message == 9)
    #expect(foreign?.isOwn == false)
  }

  @Test("has any number of listeners, each of which may begin with the current message")
  func severalListeners() async throws {
    let channel = Channel<Int>("n", in: container)
    try await channel.publish(1)
    var current = try channel.messages(startsWithCurrent: true).makeAsyncIterator()
    var later = try channel.messages().makeAsyncIterator()
    #expect(try await current.next()?.message == 1)
    try await channel.publish(2)
    #expect(try await current.next()?.message == 2)
    #expect(try await later.next()?.message == 2)
    try await channel.value.remove()
    try await channel.publish(3)
    #expect(try await later.next()?.message == 3, "a cleared message is not delivered")
  }

  @Test("loses no update, of tasks or of processes")
  func updates() async throws {
    let channel = Channel<Int>("n", in: container)
    let process = try Participant(directory.path)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<20 { try await channel.update { $0 = ($0 ?? 0) + 1 } }
        }
      }
      for _ in 0..<40 {
        let answer = try process.ask("add n 1")
        #expect(answer == "done")
      }
      try await group.waitForAll()
    }
    #expect(try await channel.value.read() == 200)
    let before = try await container.value("n").snapshot().version
    try await channel.update { _ in }
    #expect(try await container.value("n").snapshot().version == before, "nothing was changed")
    try await channel.update { $0 = nil }
    #expect(try await channel.value.read() == nil)
  }

  @Test("ends a listener with its task")
  func cancellation() async throws {
    let messages = try Channel<Int>("n", in: container).messages()
    let task = Task {
      for await _ in messages {}
      return true
    }
    task.cancel()
    #expect(await task.value)
  }
}
