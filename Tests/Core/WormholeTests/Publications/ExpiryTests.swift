import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A value that expires", .blocking, .bothEngines)
struct ExpiryTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let value: PlainValue

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    value = container.value("x")
  }

  /// Whether the value's file is there, or not, as it should be; on etcd there is none.
  private func hasFile(_ expected: Bool = true) throws -> Bool {
    try TestEngine.current == .etcd || exists(value.path, at: Directory.current) == expected
  }

  @Test("is a value until then, and afterwards reads as never written in every process")
  func reading() async throws {
    let other = try Participant(directory.path)
    let start = Date()
    try await value.replace(with: 1, expiresAfter: .seconds(3_600))
    let snapshot = try await value.snapshot()
    let expiration = try #require(snapshot.expiration)
    #expect((start + 3_599...Date() + 3_601).contains(expiration))
    #expect(try snapshot.propertyList() == 1 && snapshot.version == value.version())
    #expect(try other.ask("read x") == "1")
    for durability in [Durability.standard, .durable] {
      for content: PropertyListValue in [2, .string(longText(70_000))] {
        try await value.replace(with: content, durability: durability, expiresAfter: .zero)
        #expect(try await value.read() == nil && value.version() == nil && hasFile())
        let snapshot = try await value.snapshot()
        #expect(snapshot.isAbsent && snapshot.publisher == nil && snapshot.expiration == nil)
        #expect(try other.ask("read x") == "nil")
      }
    }
    #expect(try other.ask("expiring x 5 30") == "done")
    try eventually("it expires") { try value.read() == nil }
    #expect(try value.version() == nil)
  }

  // A writer that looked at its clock twice could put a value that never expires.
  @Test("expires although its time is over while it is written")
  func short() throws {
    let content = PropertyListValue.string(longText(500_000))
    let values = (0..<40).map { container.value("short-\($0)") }
    for (number, value) in values.enumerated() {
      try value.replace(with: content, expiresAfter: .microseconds(50 * number))
    }
    try eventually("all expire") { try values.allSatisfy { try $0.read() == nil } }
  }

  @Test("is nothing for the next change, which removes or replaces the file")
  func changing() throws {
    try value.replace(with: 1, expiresAfter: .zero)
    let seen = try value.update { content in
      defer { content = 2 }
      return content
    }
    #expect(try seen == nil && value.read() == 2 && value.snapshot().expiration == nil)
    try value.replace(with: 1, expiresAfter: .zero)
    try value.update { #expect($0 == nil) }
    #expect(try hasFile(false))
    try value.replace(with: 1, expiresAfter: .zero)
    #expect(try !value.remove() && hasFile(false))
    try value.replace(with: 1, expiresAfter: .zero)
    #expect(try value.compareAndSet(nil, 3) && value.read() == 3)
    #expect(Litter.entries(of: "x", in: directory) == ["held"], "\(directory.listing)")
  }

  @Test("keeps its expiry when an update leaves it as it was")
  func unchanged() throws {
    try value.replace(with: 1, expiresAfter: .seconds(3_600))
    let expiration = try #require(try value.snapshot().expiration)
    try value.update { $0 = 1 }
    #expect(try value.snapshot().expiration == expiration)
    let typed = container.value("x", as: Int.self)
    try typed.replace(with: 1, expiresAfter: .seconds(7_200))
    #expect(try #require(value.snapshot().expiration) > expiration)
    try typed.replace(with: 1)
    #expect(try value.snapshot().expiration == nil)
  }

  @Test("is reported to observers as absent, without any event")
  func observing() throws {
    let other = try Participant(directory.path)
    let heard = Mutex<[PropertyListValue?]>([])
    func received() -> [PropertyListValue?] { heard.withLock { $0 } }
    let queue = DispatchQueue(label: "heard")
    let observation = try value.observe(on: queue) { snapshot in
      let content = Result { try snapshot.propertyList() }
      heard.withLock { $0.append(try? content.get()) }  // Damage would be nil, and the test fail.
    }
    // Publishes the next number for longer and longer, until the observer learns of it in time.
    var number = 0
    func publishAndExpire() throws {
      var milliseconds = 50
      repeat {
        number += 1
        milliseconds *= 2
        #expect(try other.ask("expiring x \(number) \(milliseconds)") == "done")
        try eventually("it is reported or expires") {
          try received().last == number.value || value.read() == nil
        }
      } while received().last != number.value
      try eventually("its expiry is reported") { received().suffix(2) == [number.value, nil] }
    }
    try publishAndExpire()
    // After one that would live long.
    #expect(try other.ask("expiring x -1 3600000") == "done")
    try eventually("it is reported") { received().last == (-1).value }
    try publishAndExpire()
    #expect(try other.ask("set x -2") == "done")
    try eventually("it is reported") { received().last == (-2).value }
    queue.sync { observation.cancel() }
  }

  // On etcd its observers looked again and again, until etcd had removed it.
  @Test("is looked at once when its time is over, also if it is still there")
  func timer() throws {
    let timer = ExpiryTimer()
    let state = Mutex((expiry: PublicationRecord.now + 20_000_000, looks: 0))
    timer.use { [weak timer] in
      timer?.set(
        state.withLock { state in
          state.looks += 1
          return state.expiry
        })
    }
    for looks in 1...2 {
      timer.set(state.withLock(\.expiry))
      try eventually("it is looked at") { state.withLock(\.looks) >= looks }
      state.withLock { $0.expiry = PublicationRecord.now + 20_000_000 }
    }
    #expect(state.withLock(\.looks) == 2)
  }

  @Test("is reported to an observer that begins with it, and to a task", .timeLimit(.minutes(1)))
  func observingFromTheBeginning() async throws {
    var late: ValueSnapshots<PropertyListValue>
    var lifetime = Duration.milliseconds(50)
    repeat {
      lifetime *= 2
      try await value.replace(with: 1, expiresAfter: lifetime)
      late = try value.snapshots()
      // Too late on a machine that was busy for that long.
    } while late.known.state == .absent
    var known = late.makeAsyncIterator()
    #expect(await known.next()?.isAbsent == true)
    try await value.replace(with: 2, expiresAfter: .milliseconds(60))
    var iterator = try value.snapshots(startsWithCurrent: true).makeAsyncIterator()
    var last = await iterator.next()
    // Present, unless the machine was busy for that long.
    if last?.isAbsent == false { last = await iterator.next() }
    #expect(last?.isAbsent == true)
  }

  @Test("is removed by a sweep once it has expired", .onlyDirectories("etcd removes it by itself"))
  func sweeping() throws {
    try value.replace(with: 1, expiresAfter: .seconds(3_600))
    #expect(try container.sweep().removed.isEmpty)
    #expect(try value.read() == 1)
    try value.replace(with: 1, expiresAfter: .zero)
    let report = try container.report()
    #expect(report.names.values.count == 1 && report.names.values[0].bytes == nil)
    let outcome = try container.sweep()
    #expect(outcome.removed == [value.path] && outcome.failures.isEmpty)
    // A program that another test starts has this process's locks until it runs, so the name may stay
    // for the next sweep.
    try eventually("the name is removed: \(directory.listing)") {
      _ = try container.sweep()
      return try container.valueIdentifiers().isEmpty
    }
  }
}

extension Int {
  fileprivate var value: PropertyListValue? { .integer(Int64(self)) }
}
