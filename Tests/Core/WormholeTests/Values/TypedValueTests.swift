import Testing
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

@Suite("A value of a program's own type", .blocking, .bothEngines)
struct TypedValueTests {
  struct Ticket: Codable, Equatable, Sendable {
    var film: String
    var seats: [Int]
  }

  let directory: TemporaryDirectory
  let container: SharedContainer
  var tickets: Value<[Ticket]> { container.value("tickets", as: [Ticket].self) }

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  @Test("is read, replaced, updated and removed")
  func changes() throws {
    let ticket = Ticket(film: "Metropolis", seats: [3, 4])
    #expect(try tickets.read() == nil)
    try tickets.replace(with: [ticket], durability: .durable)
    #expect(try tickets.read() == [ticket])
    let count = try tickets.update { tickets in
      tickets?[0].seats.append(5)
      return tickets?.count
    }
    #expect(try count == 1 && tickets.read()?.first?.seats == [3, 4, 5])
    let version = try tickets.version()
    try tickets.update { _ in }
    #expect(try tickets.version() == version, "unchanged content is not published again")
    try tickets.update { $0 = nil }
    #expect(try tickets.read() == nil)
  }

  @Test("is read, replaced and updated by tasks")
  func tasks() async throws {
    let numbers = container.value("numbers", as: [Int].self)
    try await numbers.replace(with: [])
    try await withThrowingTaskGroup { group in
      for number in 0..<50 {
        group.addTask { try await numbers.update { $0 = ($0 ?? []) + [number] } }
      }
      try await group.waitForAll()
    }
    let all = try await numbers.read()
    #expect(all?.sorted() == Array(0..<50))
  }

  @Test("is a property list to other programs, which may change it")
  func plain() throws {
    let number = container.value("n", as: Int.self)
    try number.replace(with: 4)
    let other = try Participant(directory.path)
    #expect(try other.ask("add n 3") == "done")
    #expect(try number.read() == 7)
    #expect(try container.value("n").read() == 7)
  }

  @Test("is an error where its file has another shape, and is not changed")
  func shape() throws {
    try container.value("tickets").replace(with: "none")
    for attempt in [{ _ = try tickets.read() }, { try tickets.update { $0 = [] } }] {
      let error = try #require(throws: WormholeError.self) { try attempt() }
      #expect(error.code == .damaged && "\(error)".contains("another shape"), "\(error)")
    }
    #expect(try container.value("tickets").read() == "none")
  }

  @Test("is changed under a role, and not if its file has another shape")
  func fenced() throws {
    let role = try container.presence("r").enterExclusively()
    defer { role.close() }
    let ticket = Ticket(film: "Faust", seats: [1])
    try tickets.update(while: role.fence) { $0 = ($0 ?? []) + [ticket] }
    #expect(try tickets.read() == [ticket])
    try container.value("tickets").replace(with: "none")
    let error = #expect(throws: WormholeError.self) {
      try tickets.update(while: role.fence) { $0 = [] }
    }
    #expect(error?.code == .damaged)
    #expect(try container.value("tickets").read() == "none")
  }
}
