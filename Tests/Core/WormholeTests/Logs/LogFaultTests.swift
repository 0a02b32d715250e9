import FoundationEssentials
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

/// What only a log in a directory can suffer, because other programs can change its files.
@Suite("A log in a directory", .blocking)
struct LogFaultTests {
  private let scene: LogScene
  private var log: PlainLog { scene.log }

  init() throws { scene = try LogScene() }

  @Test("passes over messages that cannot be read, says so, and delivers the rest")
  func hostile() throws {
    try scene.append(0..<8)
    try scene.write("not a property list", to: scene.file(2))
    try removeFile(scene.file(3))
    try makeDirectory(scene.file(3))
    try removeFile(scene.file(4))
    try makeSymbolicLink(
      FileName(scene.file(4)), at: Directory.current, target: FileName(scene.file(1)))
    try scene.write("", to: scene.file(5))
    try removeFile(scene.file(7))
    for name in [
      "x", "0000000000000000.plist", "ffffffffffffffff.plist", "0000000000000002.plistx",
    ] {
      try scene.write("", to: scene.place + "/entries/" + name)
    }
    let reader = try log.subscribe("a")
    #expect(try reader.next(until: .now)?.number == 1)
    let sixth = try #require(try reader.next(until: .now))
    #expect(sixth.number == 6 && sixth.unreadable == 4 && sixth.missed == 0)
    let eighth = try #require(try reader.next(until: .now))
    #expect(eighth.number == 8 && eighth.unreadable == 0 && eighth.missed == 1)
    #expect(try reader.next(until: .now) == nil)
    #expect(try log.append(8) == 9)
    #expect(try reader.next(until: .now)?.payload == 8)
    reader.close()
    let foreign = try scene.container.report().foreignEntries.map(\.path)
    #expect(foreign.count == 5, "\(foreign)")
    _ = try scene.container.sweep()
  }

  // A one-shot reader of a subscriber never said so, and was past them the next time.
  @Test("knows what it has passed behind its last message")
  func unreadableEnd() throws {
    try scene.append(0..<3)
    for number in 2...3 { try scene.write("torn", to: scene.file(number)) }
    let reader = try log.subscribe("a")
    #expect(try reader.next(until: .now)?.number == 1)
    #expect(reader.passed == (0, 0))
    #expect(try reader.next(until: .now) == nil)
    #expect(reader.passed == (0, 2))
    try scene.append(3..<4)
    #expect(try reader.next(until: .now)?.unreadable == 2)
    #expect(reader.passed == (0, 0))
  }

  // The second one ended the process.
  @Test("may be waited for by several tasks with one reader")
  func severalTasks() async throws {
    let reader = try await log.read()
    let waiting = (0..<3).map { _ in
      Task { try await reader.next(until: .now + testPatience)?.number }
    }
    try await eventuallyAsync("one waits") { reader.isAwaited }
    for number in 0..<3 { try await log.append(PropertyListValue(number)) }
    var numbers: Set<Int?> = []
    for task in waiting { numbers.insert(try await task.value) }
    #expect(numbers == [1, 2, 3])
  }

  @Test("finds its last message behind any message that somebody removed, from any known one")
  func headBehindGap() throws {
    for (removed, known) in (1..<40).flatMap({ gone in (0..<gone).map { (gone, $0) } }) {
      let head = try LogDirectory.head(after: known) { $0 != removed && $0 <= 40 }
      #expect(head == 40, "without \(removed), known to \(known)")
    }
  }

  @Test("finds its last message behind more gaps than a stack has room for")
  func headBehindManyGaps() throws {
    #expect(try LogDirectory.head(after: 0) { $0 % 2 == 0 && $0 <= 1_000_000 } == 1_000_000)
  }

  #if DEBUG
    @Test("is not listed at each look of a reader without events, which finds what is new")
    func polling() throws {
      try scene.append(0..<3)
      var reading = LogReading()
      try reading.begin(at: 4, log)
      func look() throws -> LogMessage<PropertyListValue>? {
        try reading.look(log, LogState.largest)
      }
      #expect(try look() == nil)
      let listings = Heard<SystemCall>()
      let plan = Faults.Plan { call, _ in
        if call == .getdents64 { listings.add(call) }
        return .proceed
      }
      #expect(try Faults.$plan.withValue(plan) { try look() } == nil)
      #expect(plan.calls > 0 && listings.all.isEmpty)
      try scene.append(3..<5)
      try removeFile(scene.file(4))
      let message = try look()
      #expect(message?.number == 5 && message?.missed == 1)
    }
  #endif

  @Test("reports a gap that somebody makes while a reader waits")
  func gap() throws {
    let reader = try log.read()
    try scene.append(0..<1)
    #expect(try reader.next(until: .now)?.number == 1)
    #expect(try reader.next(until: .now) == nil)
    let writer = try PlainLog(container: scene.directory.container(), name: "l")
    try writer.append(1)
    try removeFile(scene.file(2))
    writer.memory.note(2, in: try writer.memory.state(of: writer.value))
    try writer.append(2)
    let next = try #require(try reader.next(until: soon))
    #expect(next.number == 3 && next.missed == 1)
  }

  // A kept log went on with its own last number, and every subscriber missed what others appended then.
  @Test("goes on where an older state of its container ends that was put in its place")
  func setBack() throws {
    try scene.append(0..<3)
    let reader = try log.read()
    #expect(try scene.drain(reader) == [0, 1, 2])
    let (path, old) = (scene.directory.path, scene.directory.path + "-old")
    defer {
      // After an error one of them may not have been made.
      for aside in [old, path + "-new"] { try? FileManager.default.removeItem(atPath: aside) }
    }
    try FileManager.default.copyItem(atPath: path, toPath: old)
    try scene.append(3..<40)
    #expect(try scene.drain(reader) == Array(3..<40))
    try FileManager.default.moveItem(atPath: path, toPath: path + "-new")
    try FileManager.default.moveItem(atPath: old, toPath: path)
    // Up to a second may pass until it is noticed.
    try eventually("the older state is open") { try log.store.open()?.numbers().count == 3 }
    #expect(try reader.next(until: .now + .seconds(1)) == nil)
    #expect(try scene.append(40..<41) == [4])
    #expect(try scene.directory.container().log("l").append(41) == 5)
    let next = try #require(try reader.next(until: soon))
    #expect(next.number == 4 && next.missed == 0 && next.payload == 40)
    #expect(try scene.drain(reader) == [41])
  }

  @Test("takes old messages away although one was appended while the clock was ahead")
  func clockAhead() throws {
    try log.setBounds(.init(messages: 100, bytes: 1 << 20, age: .seconds(3_600)))
    try scene.append(0..<3)
    for (number, hours) in [(1, 90_000.0), (2, -2), (3, -2)] {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: hours * 3_600)],
        ofItemAtPath: scene.file(number))
    }
    try scene.append(3..<4)
    #expect(try log.sweep(until: soon).count == 3)
    #expect(try scene.numbers() == [4])
  }

  @Test("shows the subscribers of a log with a long name, and forgets them with the log")
  func longName() throws {
    for name in [String(repeating: "\u{e9}", count: 150), "short"] {
      let log = scene.container.log(name)
      try log.append(1)
      for subscriber in ["x", "\u{301}y"] { try log.subscribe(subscriber).close() }
      #expect(try log.subscribers().count == 2, "\(name)")
      try FileManager.default.removeItem(atPath: log.path)
    }
    var faults = NameFaults()
    #expect(try PlainLog.sweepPositions(in: scene.container, &faults, until: soon).count == 4)
  }

  #if DEBUG
    private func beginAgain() {
      Faults.$plan.withValue(nil) {
        do {
          try scene.directory.container().log("l").append(2)
          let read = try scene.read(as: "s")
          #expect(read == [2])
        } catch {
          Issue.record(error)
        }
      }
    }

    @Test("keeps the position of a subscriber whose log began again during a sweep")
    func sweepOfLiving() throws {
      try log.append(1)
      #expect(try scene.read(as: "s") == [1])
      try FileManager.default.removeItem(atPath: log.path)
      let listing = Faults.Plan { _, _ in .proceed }
      _ = try Faults.$plan.withValue(listing) { try scene.container.logNames() }
      let calls = listing.calls
      // After the sweep has listed the logs.
      let plan = Faults.Plan { _, index in
        if index == calls { beginAgain() }
        return .proceed
      }
      var faults = NameFaults()
      let gone = try Faults.$plan.withValue(plan) {
        try PlainLog.sweepPositions(in: scene.container, &faults, until: soon)
      }
      #expect(gone.isEmpty)
      let reader = try scene.directory.container().log("l").subscribe("s")
      #expect(try scene.drain(reader) == [])
    }
  #endif

  @Test("is not led astray by planted numbers, however large, nor kept from taking messages away")
  func planted() throws {
    try log.setBounds(.init(messages: 8, bytes: 1 << 20))
    try scene.append(0..<4)
    #expect(try scene.read(as: "a") == [0, 1, 2, 3])
    for number in [1 << 59, 5_000] { try scene.write("", to: scene.file(number)) }
    // A new reader lists the log.
    let reader = try log.subscribe("a")
    #expect(try scene.drain(reader) == [])
    let fresh = try scene.directory.container().log("l")
    for number in 4..<40 { try fresh.append(PropertyListValue(number)) }
    let all = try scene.drain(reader)
    #expect(all.last == 39 && all.count >= 8 && all == all.sorted(), "\(all)")
    #expect(try log.read().next(until: .now)?.payload.intValue ?? 0 >= 31)
    _ = try scene.container.sweep()
    // A gap of any length.
    try log.value.update { content in
      content?["head"] = PropertyListValue(1 << 58)
      content?["first"] = 20
    }
    try scene.directory.container().log("l").append(40)
    #expect(try reader.next(until: .now)?.payload == 40)
    #expect(try scene.container.sweep().failures.isEmpty)
  }

  @Test("begins although a message was planted whose number no log can have")
  func plantedFirst() throws {
    try scene.append(0..<1)
    try removeFile(log.value.path)
    try scene.write("", to: scene.file(1 << 60))
    let fresh = try scene.directory.container().log("l")
    #expect(try fresh.append(1) == 2)
    #expect(try fresh.append(2) == 3)
  }
  @Test("reports a damaged log.plist, for which a remedy exists that loses no message")
  func damaged() throws {
    try scene.append(0..<2)
    #expect(try scene.read(as: "a") == [0, 1])
    for damage in ["garbage", "<plist><dict><key>id</key><string>x</string></dict></plist>"] {
      try scene.write(damage, to: log.value.path)
      let fresh = try scene.directory.container().log("l")
      let error = #expect(throws: WormholeError.self) { try fresh.append(2) }
      #expect(error?.code == .damaged)
      #expect(try scene.container.report().names.logs.first?.problem?.code == .damaged)
    }
    #expect(try log.value.quarantine() != nil)
    #expect(try scene.directory.container().log("l").append(2) == 3)
    #expect(try scene.read() == [0, 1, 2])
  }

  @Test("delivers what got numbers again after a loss of power had undone the last ones")
  func power() throws {
    try scene.append(0..<5)
    #expect(try scene.read(as: "a") == Array(0..<5))
    let gone = LogCursor.value("a", of: log)
    for number in 4...5 { try removeFile(scene.file(number)) }
    // As if all of that had happened in another start of the machine.
    try log.value.update { $0?["boots"] = [["id": "before", "first": 1]] }
    try gone.update { $0?["boot"] = "before" }
    let after = try scene.directory.container().log("l")
    for number in 10..<14 { try after.append(PropertyListValue(number)) }
    #expect(try scene.read() == [0, 1, 2, 10, 11, 12, 13])
    #expect(try scene.read(as: "a") == [10, 11, 12, 13])
  }

  @Test(
    "does not let a process that lost a subscriber's name move the position of the one that has it")
  func lateTakeover() throws {
    try scene.append(0..<2)
    let role = try LogCursor.presence("a", of: log).enterExclusively()
    let late = LogCursor(log: log, subscriber: "a", registration: role)
    // As if it had been stopped between its entering and its takeover, and another had taken over.
    role.close()
    let reader = try scene.directory.container().log("l").subscribe("a")
    let state = try #require(try log.memory.state(of: log.value))
    let error = #expect(throws: WormholeError.self) { try late.takeOver(state, until: nil) { 1 } }
    #expect(error?.code == .leaseLost)
    #expect(try scene.drain(reader) == [0, 1])
    try reader.acknowledge()
  }

  @Test("begins again under its name after it was removed, for its subscribers, too")
  func removed() throws {
    try scene.append(0..<3)
    #expect(try scene.read(as: "a") == [0, 1, 2])
    let reader = try log.read(from: .end)
    try FileManager.default.removeItem(atPath: scene.place)
    try scene.append(7..<8)
    #expect(try scene.read(as: "a") == [7])
    #expect(try reader.next(until: .now)?.payload == 7)
  }

  // It made the directory of its position again, and a slow `rm -r` failed.
  @Test("learns that its position was removed, and makes nothing of it again")
  func removedPosition() throws {
    try scene.append(0..<1)
    let reader = try log.subscribe("a")
    #expect(try reader.next(until: soon)?.payload == 0)
    let place = LogCursor.value("a", of: log).directory.path
    try FileManager.default.removeItem(atPath: place)
    let error = #expect(throws: WormholeError.self) { try reader.acknowledge() }
    #expect(error?.code == .leaseLost)
    #expect(!FileManager.default.fileExists(atPath: place))
  }

  // It was called again and again.
  @Test("ends its follower with the handler's error, whatever that is")
  func handlerError() async throws {
    try await log.append(0)
    let calls = Heard<Int>()
    let follower = log.follower("a") { _ in
      calls.add(0)
      if calls.all.count > 1 { throw CancellationError() }
      throw WormholeError(.leaseLost, "write", reason: "its own value's")
    }
    let error = await #expect(throws: WormholeError.self) { try await follower.run() }
    #expect(error?.code == .leaseLost && calls.all.count == 1)
  }
}
