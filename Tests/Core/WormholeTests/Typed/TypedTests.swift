import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("Names with one type of the program", .blocking)
struct TypedTests {
  private struct Job: Codable, Sendable, Equatable {
    var film: String
    var copies = 1
  }

  private let directory: TemporaryDirectory
  private let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  @Test("deliver the entries of a queue, and fail one of another shape alone")
  func queue() async throws {
    let jobs = container.queue("print", of: Job.self)
    let sender = try jobs.sender("box office")
    try await sender.enqueue(Job(film: "Metropolis", copies: 2))
    try await container.queue("print").sender("other").enqueue("no job")
    try await sender.enqueue(Job(film: "Faust"), durability: .durable)
    var films: [String] = []
    var faults = 0
    for try await entry in try await jobs.work().entries() {
      do {
        films.append(try entry.content.film)
        try entry.acknowledge()
      } catch {
        #expect(entry.sender == "other")
        faults += 1
        try entry.fail("it is not a job", isKept: true)
      }
      if films.count + faults == 3 { break }
    }
    #expect(films.sorted() == ["Faust", "Metropolis"])
    #expect(faults == 1)
    #expect(try jobs.failures().count == 1)
  }

  @Test("deliver the messages of a log with their numbers")
  func log() async throws {
    let sales = container.log("sales", of: Job.self)
    #expect(try await sales.append(Job(film: "Metropolis")) == 1)
    #expect(try await sales.append(Job(film: "Faust")) == 2)
    var numbers: [Int] = []
    for try await sale in try await sales.subscribe("statistics").messages() {
      numbers.append(sale.number)
      if try sale.content == Job(film: "Faust") { break }
    }
    #expect(numbers == [1, 2])
    for try await sale in try await sales.read().messages() {
      #expect(try sale.content == Job(film: "Metropolis"))
      break
    }
  }

  @Test("deliver the snapshots of a value")
  func snapshots() async throws {
    let seats = container.value("seats", as: [Int].self)
    try await seats.replace(with: [7])
    for await snapshot in try seats.snapshots(startsWithCurrent: true) {
      guard try snapshot.content != [7] else {
        try await seats.remove()
        continue
      }
      #expect(try snapshot.content == nil)
      break
    }
    var iterator = try seats.snapshots(startsWithCurrent: true).makeAsyncIterator()
    #expect(try await iterator.next(until: .now + .seconds(60))?.content == .some(nil))
    #expect(await iterator.next(until: .now) == nil)
  }

  @Test("are waited for by a thread, too")
  func blocking() throws {
    let seats = container.value("seats", as: [Int].self)
    var iterator = try seats.snapshots().makeAsyncIterator()
    #expect(iterator.next(until: .now) == nil)
    try seats.replace(with: [7])
    #expect(try iterator.next(until: .now + .seconds(60))?.content == [7])
  }

  @Test("have errors that a catch names by their code")
  func codes() async throws {
    try await container.mutex("m").withLock { _ in
      do {
        try await container.mutex("m").withLock(until: .now) { _ in }
        Issue.record("two have the lock")
      } catch WormholeError.Code.leaseLost {
        Issue.record("another code")
      } catch WormholeError.Code.timedOut {
        return
      }
    }
  }

  @Test("have a lock for a name, which excludes other processes and is free after its holder's end")
  func mutex() throws {
    let other = try Participant(directory.path)
    #expect(try other.ask("lead m").hasPrefix("leads"))
    #expect(throws: WormholeError.self) {
      try container.mutex("m").withLock(until: .now) { _ in }
    }
    try other.send(.kill)
    #expect(try other.wait() == .killed(signal: 9))
    let number = try container.mutex("m").withLock { $0.number }
    #expect(number > 0)
  }

  @Test("have a leader that is replaced when it is stopped, and leads again after its successor")
  func leader() throws {
    let first = try Participant(directory.path)
    let second = try Participant(directory.path)
    #expect(try first.ask("lead l").hasPrefix("leads"))
    try first.send(.stop)
    try first.waitUntilStopped()
    #expect(try second.ask("lead l").hasPrefix("leads"))
    try first.send(.continue)
    try eventually("the first one no longer leads") { try first.ask("led l") == "1 0" }
    try second.send(.kill)
    #expect(try second.wait() == .killed(signal: 9))
    try eventually("the first one leads again") { try first.ask("led l") == "2 1" }
  }
}
