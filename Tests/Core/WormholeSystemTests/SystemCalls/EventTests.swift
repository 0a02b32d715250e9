import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("Events", .blocking)
struct EventTests {
  @Test("come in order, each with the number of its watch and its kind")
  func order() throws {
    let directory = try TemporaryDirectory()
    let (first, second) = ("\(directory.path)/first", "\(directory.path)/second")
    try makeDirectory(first)
    try makeDirectory(second)
    let queue = try nextEventQueue()
    let one = try queue.addWatch(first, [.created, .movedTo, .movedFrom, .deleted, .onlyDirectory])
    let two = try queue.addWatch(second, [.closedAfterWriting, .selfDeleted])
    #expect(try queue.addWatch(first, [.attributes, .addToExisting]) == one)
    #expect(one != two)
    #expect(try !queue.takeEvents { _, _ in })

    var seen: [Seen] = []
    func takeEvents() throws {
      while try queue.takeEvents({ seen.append(Seen($0, $1)) }) {}
    }

    // Names of several lengths: the records are padded (inotify(7)).
    let long = String(repeating: "x", count: 255)
    try makeDirectory("\(first)/\(long)")
    try takeEvents()
    try FileDescriptor.open("\(second)/a", [.writeOnly, .create]).close()
    // A child that another test is starting shares the open file until it runs its own program.
    #expect(try waitReadable([queue.rawValue], until: soon) == [true])
    try rename(
      "\(first)/\(long)", at: Directory.current, to: "\(first)/b", at: Directory.current)
    try removeDirectory("\(first)/b")
    try removeFile("\(second)/a")
    try removeDirectory(second)

    try takeEvents()
    #expect(
      seen == [
        Seen(one, .created), Seen(two, .closedAfterWriting), Seen(one, .movedFrom),
        Seen(one, .movedTo), Seen(one, .deleted), Seen(two, .selfDeleted), Seen(two, .ignored),
      ])
    #expect(throws: Errno.invalidArgument) { try queue.removeWatch(two) }
  }

  private struct Seen: Hashable {
    let watch: Int32
    let events: WatchEvents

    init(_ watch: Int32, _ events: WatchEvents) {
      // The kernel adds IN_ISDIR, which is not an event.
      self.watch = watch
      self.events = events.subtracting(WatchEvents(rawValue: 0x4000_0000))
    }
  }

  @Test("are refused for foreign descriptors and paths")
  func refusals() throws {
    let directory = try TemporaryDirectory()
    let queue = try nextEventQueue()
    #expect(throws: Errno.noSuchFile) { try queue.addWatch("\(directory.path)/no", .created) }
    try FileDescriptor.open("\(directory.path)/file", [.writeOnly, .create]).close()
    #expect(throws: Errno.notDirectory) {
      try queue.addWatch("\(directory.path)/file", [.created, .onlyDirectory])
    }
  }

  @Test("A counter wakes once however often it was raised, and can be lowered at zero")
  func counter() throws {
    let counter = try FileDescriptor.wakeUpCounter()
    try counter.lowerCounter()
    #expect(try waitReadable([counter.rawValue], until: .now) == [false])
    try counter.raiseCounter()
    try counter.raiseCounter()
    #expect(try waitReadable([counter.rawValue], until: .now) == [true])
    try counter.lowerCounter()
    #expect(try waitReadable([counter.rawValue], until: .now) == [false])
  }

  @Test("A wait returns the ready descriptors, and none at its deadline, never before it")
  func wait() throws {
    let ready = try FileDescriptor.wakeUpCounter()
    let idle = try FileDescriptor.wakeUpCounter()
    try ready.raiseCounter()
    let both = [idle.rawValue, ready.rawValue]
    #expect(try waitReadable(both, until: nil) == [false, true])
    #expect(try waitReadable(both, until: .now - .seconds(5)) == [false, true])
    #expect(try waitReadable([idle.rawValue], until: .now - .seconds(5)) == [false])
    #expect(try waitReadable([], until: .now) == [])
    for wait in [Duration.microseconds(1), .microseconds(1_500), .milliseconds(20)] {
      let deadline = ContinuousClock.now + wait
      #expect(try waitReadable([idle.rawValue], until: deadline) == [false])
      #expect(ContinuousClock.now >= deadline)
    }
  }

  @Test("A wait ends when the other end is gone")
  func hangUp() throws {
    let reader = try makePipe().takeRead()
    #expect(try waitReadable([reader.descriptor.rawValue], until: nil) == [true])
    #expect(try Program.read(from: reader.descriptor.rawValue, maximumBytes: 1) == [])
  }

  @Test(
    "A wait is rounded up to whole milliseconds",
    arguments: [
      (.zero, 0), (.seconds(-1), 0), (.nanoseconds(-1), 0), (.seconds(Int64.min), 0),
      (.nanoseconds(1), 1), (Duration(secondsComponent: 0, attosecondsComponent: 1), 1),
      (.microseconds(999), 1), (.milliseconds(1), 1), (.nanoseconds(1_000_001), 2),
      (.milliseconds(999), 999), (.nanoseconds(999_000_001), 1_000), (.seconds(1), 1_000),
      (.milliseconds(1_500), 1_500), (.seconds(86_400), 86_400_000),
      (.seconds(2_147_482), 2_147_482_000), (.seconds(3_000_000), Int32.max),
      (.seconds(Int64.max), Int32.max),
    ] as [(Duration, Int32)])
  func milliseconds(_ duration: Duration, _ expected: Int32) {
    #expect(duration.pollMilliseconds == expected)
  }
}
