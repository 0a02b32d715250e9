import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("Presence between processes", .blocking, .bothEngines)
struct PresenceTests {
  let directory: TemporaryDirectory
  let presence: Presence

  init() throws {
    directory = try TemporaryDirectory()
    presence = try directory.container().presence("p")
  }

  private func participant() throws -> Participant { try Participant(directory.path) }

  private var place: String { directory.path + "/presence/p" }

  /// A program that removes the container (`rm -r`) would miss the file, so that stays. It used to keep
  /// its lock while a child was being started.
  @Test(
    "ends with a registration that is closed during a removal, even if a child shares its lock",
    .onlyDirectories("its file is removed"))
  func closedDuringRemoval() throws {
    let registration = try presence.enter()
    let file = "\(place)/member-\(registration.id).plist"
    let numbers = try FileDescriptor.open("/proc/self/fd", [.readOnly, .directory]).entries()
      .compactMap { Int32($0.name.text) }
    let number = try #require(
      numbers.first { number in
        do throws(Errno) {
          return try linkTarget("/proc/self/fd/\(number)") == file
        } catch {
          // Closed by another test meanwhile.
          return false
        }
      })
    let child = try ChildProcess("sleep", ["60"], output: number)
    ChangeMonitor.shared.noteRemoval(in: directory.path)
    registration.close()
    let members = try presence.members()
    try child.send(.kill)
    #expect(try child.wait(until: soon) == .killed(signal: 9))
    #expect(members == [])
  }

  #if DEBUG
    @Test(
      "finds nobody without a list of the directory, until somebody enters",
      .onlyDirectories("it counts calls"))
    func vacancy() throws {
      try presence.enter().close()
      let aDayAgo = realTime().seconds - 86_400
      try FileDescriptor.open(place, [.readOnly, .directory])
        .setModified(seconds: aDayAgo, nanoseconds: 0)
      #expect(try presence.members() == [])
      let plan = Faults.Plan { call, _ in
        #expect(call != .getdents64)
        return .proceed
      }
      #expect(try Faults.$plan.withValue(plan) { try presence.members() } == [])
      #expect(plan.calls <= 2)
      let registration = try presence.enter()
      #expect(try presence.members().map(\.id) == [registration.id])
    }

    @Test(
      "ends although its own watch looks at that moment, and the next one leaves no file either",
      .onlyDirectories("it closes between two calls"))
    func endsWhileWatched() throws {
      let registration = try presence.enter()
      let plan = Faults.Plan { _, number in
        if number == 0 { registration.close() }
        return .proceed
      }
      #expect(throws: WormholeError.self) {
        try Faults.$plan.withValue(plan) { try registration.confirm() }
      }
      #expect(plan.calls > 1)
      // After a removal by another program it would be left to that one.
      try presence.enter().close()
      let left = try FileDescriptor.open(place, [.readOnly, .directory]).entries()
      #expect(!left.contains { $0.name.hasPrefix("member-") }, "\(directory.listing)")
    }
  #endif

  @Test("shows entered processes with their content, and none that left")
  func entersAndLeaves() throws {
    #expect(try presence.status() == .neverSeen)
    #expect(try presence.members() == [])
    let a = try participant()
    let id = try a.ask("enter p hello")
    let member = try #require(try presence.members().first)
    #expect(member.id == id)
    #expect(member.processID == a.processID)
    #expect(member.program == "participant")
    #expect(member.state == .running)
    #expect(member.content == "hello")
    #expect(!member.isOwnProcess)
    #expect(try presence.status() == .running(member))
    #expect(try a.ask("leave p") == "done")
    #expect(try presence.members() == [])
    guard case .gone(let last, let ended) = try presence.status() else {
      Issue.record("\(try presence.status())")
      return
    }
    #expect(last?.id == id)
    #expect(try #require(ended) >= member.since)
    #expect(try presence.container.presenceNames() == ["p"])
  }

  @Test("of a killed process ends with it, and names it")
  func killed() throws {
    let a = try participant()
    let id = try a.ask("enter p")
    try a.end()
    #expect(try presence.members() == [])
    guard case .gone(let last, let ended) = try presence.status() else {
      Issue.record("\(try presence.status())")
      return
    }
    #expect(last?.id == id)
    #expect(last?.processID == a.processID)
    #expect(last?.state == .gone)
    #expect(ended == nil, "the time is unknown")
  }

  @Test("shows a stopped process as suspended, and as running when it is continued")
  func suspended() throws {
    let a = try participant()
    _ = try a.ask("enter p")
    try a.send(.stop)
    try a.waitUntilStopped()
    let member = try #require(try presence.members().first)
    #expect(member.state == .suspended)
    #expect(try presence.status() == .suspended(member))
    try a.send(.continue)
    try eventually("it is seen to run") { try presence.members().first?.state == .running }
    #expect(try a.ask("members p") == "\(a.processID):running")
  }

  @Test("reports entering, leaving and death to observers, and nothing that is over")
  func observed() async throws {
    let seen = Mutex<[[Int32]]>([])
    let observation = try presence.observe(startsWithCurrent: true, on: .global()) { members in
      seen.withLock { $0.append(members.map(\.processID)) }
    }
    defer { observation.cancel() }
    func last() -> [Int32]? { seen.withLock { $0.last } }
    try eventually("an empty list comes first") { last() == [] }
    let a = try participant()
    let b = try participant()
    _ = try a.ask("enter p")
    try eventually("the first is reported") { last() == [a.processID] }
    _ = try b.ask("enter p")
    try eventually("the second is reported") { last() == [a.processID, b.processID] }
    try a.end()
    try eventually("its death is reported") { last() == [b.processID] }
    _ = try b.ask("leave p")
    try eventually("its leaving is reported") { last() == [] }
    #expect(
      seen.withLock { $0 } == [
        [], [a.processID], [a.processID, b.processID], [b.processID], [],
      ])
  }

  // On ext4, moving it aside takes longer than all else.
  @Test(
    "reports a death before the dead is moved aside, to a handler and to a task",
    .onlyDirectories("it looks at the files"))
  func reportsFirst() async throws {
    let a = try participant()
    let id = try a.ask("enter p")
    let file = "\(place)/member-\(id).plist"
    let wasThere = Mutex<Bool?>(nil)
    let observation = try presence.observe(on: .global()) { members in
      do throws(Errno) {
        let isThere = try ifPresent(fileStatus(file)) != nil
        wasThere.withLock { if members.isEmpty { $0 = isThere } }
      } catch {
        Issue.record(error)
      }
    }
    try a.end()
    try eventually("its death is reported") { wasThere.withLock { $0 != nil } }
    #expect(wasThere.withLock { $0 } == true)
    try eventually("it is moved aside") { try ifPresent(fileStatus(file)) == nil }
    observation.cancel()
    let changes = try presence.changes()
    let b = try participant()
    let other = try b.ask("enter p")
    try b.end()
    for await members in changes where members.isEmpty { break }
    try eventually("it is moved aside, too") {
      try ifPresent(fileStatus("\(place)/member-\(other).plist")) == nil
    }
  }

  @Test(
    "with a hundred processes is exact, before and after all are killed at once",
    .onlyDirectories("a hundred processes load libcurl"))
  func hundred() throws {
    let others = try (0..<100).map { _ in try participant() }
    for other in others { try other.tell("enter p") }
    let ids = try others.map { try $0.answer() }
    let seen = Mutex<[String]>([])
    let observation = try presence.observe(startsWithCurrent: true, on: .global()) { members in
      seen.withLock { $0 = members.map(\.id) }
    }
    defer { observation.cancel() }
    let members = try presence.members()
    #expect(Set(members.map(\.id)) == Set(ids))
    #expect(Set(members.map(\.processID)) == Set(others.map(\.processID)))
    #expect(members.allSatisfy { $0.state == .running })
    try eventually("all are reported") { seen.withLock { Set($0) } == Set(ids) }
    for other in others.dropLast() { try other.send(.kill) }
    try eventually("the remaining process is reported") { seen.withLock { $0 } == [ids[99]] }
    #expect(try presence.members().map(\.id) == [ids[99]])
    // An optimized build would release, and so kill, it earlier.
    withExtendedLifetime(others) {}
  }

  @Test(
    "is examined without an event: only owners open their files for writing",
    .onlyDirectories("it watches the directory"))
  func looksAreSilent() throws {
    let a = try participant()
    _ = try a.ask("enter p")
    let queue = try nextEventQueue()
    _ = try queue.addWatch(place, [.closedAfterWriting, .created, .deleted, .movedTo, .movedFrom])
    _ = try presence.members()
    _ = try presence.status()
    var events = 0
    _ = try queue.takeEvents { _, _ in events += 1 }
    #expect(events == 0)
    try a.end()
    _ = try queue.takeEvents { _, _ in events += 1 }
    #expect(events == 1, "the detector detects")
  }

  @Test("is a sequence of the present processes")
  func sequence() async throws {
    var changes = try presence.changes().makeAsyncIterator()
    #expect(await changes.next() == [])
    let a = try participant()
    let id = try a.ask("enter p")
    #expect(await changes.next()?.map(\.id) == [id])
    try a.end()
    #expect(await changes.next() == [])
  }
}
