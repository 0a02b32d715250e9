import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("A value", .blocking, .bothEngines)
struct ValueTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  @Test("is nil until it is written, and after it was removed")
  func absent() throws {
    let value = container.value("x")
    #expect(try value.read() == nil)
    #expect(try !value.remove())
    try value.replace(with: ["a": [1, 2.5, true, "é"]])
    #expect(try value.read() == ["a": [1, 2.5, true, "é"]])
    #expect(try value.remove())
    #expect(try value.read() == nil)
  }

  @Test(
    "is exactly a property list on disk, and nothing else is left beside it",
    .onlyDirectories("it reads the file"))
  func onDisk() throws {
    let value = container.value("x")
    for number in 0..<3 { try value.replace(with: PropertyListValue(number)) }
    try value.replace(with: 7, durability: .durable)
    let content = try FileDescriptor.open(value.path, .readOnly)
    let bytes = try content.readToEnd(expectedBytes: 0, maximumBytes: 1_000)
    #expect(try PropertyListValue(bytes: bytes) == 7)
    #expect(Litter.entries(of: "x", in: directory) == ["held"], "\(directory.listing)")
  }

  @Test("is set only if it is of the version that the caller has seen")
  func compareAndSet() throws {
    let value = container.value("x")
    let other = try Participant(directory.path)
    #expect(try value.compareAndSet(nil, 1))
    #expect(try !value.compareAndSet(nil, 2) && value.read() == 1)
    let seen = try value.version()
    // The same content, but another publication.
    #expect(try other.ask("set x 1") == "done")
    #expect(try !value.compareAndSet(seen, 3) && value.read() == 1)
    #expect(try value.compareAndSet(value.version(), 4) && value.read() == 4)
    #expect(try !value.compareAndSet(seen, nil))
    #expect(try value.compareAndSet(value.snapshot().version, nil))
    #expect(try value.read() == nil)
    #expect(try value.compareAndSet(nil, nil))
  }

  @Test(
    "is compared when its lease is free: a change that is under way counts",
    .onlyDirectories("on etcd nobody waits for a change: see EtcdValueTests"))
  func comparedUnderLease() async throws {
    let value = container.value("x")
    try await value.replace(with: 1)
    let seen = try value.version()
    let other = try Participant(directory.path)
    #expect(try other.ask("hold x 10") == "holding")
    async let isSet = value.compareAndSet(seen, 99)
    #expect(try other.ask("go on") == "done")
    #expect(try await !isSet)
    #expect(try await value.read() == 11)
  }

  @Test("is updated as its closure leaves it, or not at all")
  func updates() throws {
    let value = container.value("x")
    let seen = try value.update { content in
      let before = content
      content = 5
      return before
    }
    #expect(seen == nil)
    struct Refused: Error {}
    #expect(throws: Refused.self) {
      try value.update { content in
        content = 6
        throw Refused()
      }
    }
    #expect(try value.read() == 5)
    let version = try value.snapshot().version
    try value.update { $0 = 5 }
    #expect(try value.snapshot().version == version, "an unchanged value is not published again")
    try value.update { $0 = nil }
    #expect(try value.read() == nil)
    #expect(Litter.entries(of: "x", in: directory) == ["held"], "\(directory.listing)")
  }

  @Test("that is large or durable is written before the lease is taken, and is whole all the same")
  func largeAndDurable() throws {
    let value = container.value("x")
    let text = String(repeating: "0123456789", count: TestEngine.current.times(100_000))
    for durability in [Durability.standard, .durable] {
      try value.replace(with: .string(text + "\(durability)"), durability: durability)
      #expect(try value.read() == .string(text + "\(durability)"))
      try value.update(durability: durability) { $0 = .integer(1) }
      #expect(try value.read() == 1)
      try value.remove(durability: durability)
    }
    #expect(Litter.entries(of: "x", in: directory) == ["held"], "\(directory.listing)")
  }

  @Test("never has the same version twice")
  func versions() throws {
    let value = container.value("x")
    var seen: Set<Version> = []
    for _ in 0..<TestEngine.current.times(500) {
      try value.replace(with: 1)
      let version = try #require(try value.snapshot().version)
      #expect(seen.insert(version).inserted)
    }
    let latest = try #require(try value.snapshot().version)
    #expect(seen.contains(latest))
  }

  @Test(
    "has the version of its snapshot, and none without a value",
    .onlyDirectories("it puts a directory in the file's place"))
  func versionAlone() throws {
    let value = container.value("x")
    #expect(try value.version() == nil)
    for number in 0..<3 {
      let before = try value.version()
      try value.replace(with: PropertyListValue(number))
      let version = try value.version()
      #expect(try version == value.snapshot().version && version != before)
      #expect(try version == value.version())
    }
    try value.remove()
    #expect(try value.version() == nil)
    // A directory in the file's place has no version.
    try makeDirectory(value.path)
    #expect(try value.version() != nil)
    #expect(throws: WormholeError.self) { try value.snapshot() }
    // The whole container is removed during the test.
    try removeDirectory(value.path)
    _ = try ChildProcess("rm", ["-rf", directory.path]).wait(until: soon)
    #expect(throws: WormholeError.self) { try value.version() }
  }

  @Test(
    "also has a new version after a program sets its time back to the same one",
    .onlyDirectories("it changes the file"))
  func foreignVersions() throws {
    let value = container.value("x")
    var seen: Set<Version> = []
    for text in [
      "<plist><true/></plist>", "<plist><false/></plist>", "<plist><real>1</real></plist>",
    ] {
      try value.replace(with: 1)
      let file = try FileDescriptor.open(value.path, [.writeOnly, .truncate])
      try file.writeAll(Array(text.utf8))
      try file.setModified(seconds: 1_000_000_000, nanoseconds: 0)
      try file.close()
      #expect(seen.insert(try #require(try value.snapshot().version)).inserted)
    }
  }

  @Test("that no reader would accept is not published, and the old one stays")
  func refused() throws {
    let value = container.value("x")
    try value.replace(with: 1)
    var deep: PropertyListValue = 1
    for _ in 0..<PropertyListLimits.deepestNesting { deep = [deep] }
    let wide = PropertyListValue.array(Array(repeating: true, count: 1_000_001))
    for hostile in [[deep], wide] {
      let error = #expect(throws: WormholeError.self) { try value.replace(with: hostile) }
      #expect(error?.code == .unsupportedValue)
      #expect(throws: WormholeError.self) { try value.update { $0 = hostile } }
    }
    #expect(try value.read() == 1)
  }

  @Test("serves tasks as well, and a cancelled one stops waiting")
  func fromTasks() async throws {
    let value = container.value("x")
    try await value.replace(with: 1)
    let sum = try await value.update { content in
      let sum = (content?.intValue ?? 0) + 1
      content = PropertyListValue(sum)
      return sum
    }
    #expect(sum == 2)
    #expect(try await value.read() == 2)
    try await value.remove()
    #expect(try await value.read() == nil)
  }

  @Test(
    "with a foreign entry as its file is an error that says so, and a write repairs it",
    .onlyDirectories("it plants entries"),
    arguments: [
      "fifo", "link", "directory", "socket",
    ])
  func planted(kind: String) throws {
    let value = container.value("x")
    try value.replace(with: 1)
    try removeFile(value.path)
    let script =
      switch kind {
      case "fifo": "mkfifo '\(value.path)'"
      case "link": "ln -s /etc/passwd '\(value.path)'"
      case "directory": "mkdir '\(value.path)'; echo precious > '\(value.path)/file'"
      // The path may be too long for the address of a socket.
      default:
        """
        cd "$(dirname '\(value.path)')"
        python3 -c 'import socket; socket.socket(1).bind("\(LeaseSite.value)")'
        """
      }
    try directory.shell(script)
    let error = #expect(throws: WormholeError.self) { try value.read() }
    #expect(error?.path == value.path, "\(String(describing: error))")
    if kind == "fifo" || kind == "directory" || kind == "link" {
      #expect(error?.code == .notAValue, "\(String(describing: error))")
    }
    #expect(throws: WormholeError.self) { try value.update { $0 = 2 } }
    try value.replace(with: 3)
    #expect(try value.read() == 3)
    if kind == "directory" {
      #expect(directory.listing.contains("quarantine/"), "\(directory.listing)")
      #expect(directory.listing.contains("/file"), "what was inside is kept")
    }
  }

  @Test(
    "that is damaged or too large is an error only for its own name",
    .onlyDirectories("it writes the files"))
  func damaged() throws {
    try container.value("good").replace(with: 1)
    let value = container.value("bad")
    try value.replace(with: "x")
    for content in ["", "bplist00", "bplist00garbage", "{ a = 1; }"] {
      let file = try FileDescriptor.open(value.path, [.writeOnly, .truncate])
      try file.writeAll(Array(content.utf8))
      let error = #expect(throws: WormholeError.self) { try value.read() }
      #expect(error?.code == .damaged)
      #expect(error?.path == value.path)
    }
    #expect(throws: WormholeError.self) {
      try value.snapshot(limits: PropertyListLimits(maximumBytes: 4))
    }
    #expect(try container.value("good").read() == 1)
  }

  @Test(
    "is written again if its directory is removed while a writer waits",
    .onlyDirectories("it removes directories"))
  func directoryRemoved() throws {
    let value = container.value("k")
    try value.replace(with: 1)
    let holder = try Participant(directory.path)
    #expect(try holder.ask("long k 1") == "holding")
    let writer = try Participant(directory.path)
    try writer.tell("set k 5")
    try eventually("the writer waits") { try writer.waitsForLease(of: "k", in: directory) }
    // Stopped meanwhile, because it would create its lease again while `rm` is at work, which would
    // then find the directory not empty.
    try writer.send(.stop)
    try writer.waitUntilStopped()
    try directory.shell("rm -r values/k")
    try writer.send(.continue)
    #expect(try writer.answer() == "done")
    #expect(try value.read() == 5)
    #expect(try holder.ask("go") == "holding", "its change is made again")
    #expect(try holder.ask("go") == "done")
    #expect(try value.read() == 6)
  }

  @Test(
    "of another user is not read", .onlyDirectories("it is about the file's owner"),
    .enabled(if: Program.effectiveUser == 0, "needs root"))
  func foreignOwner() throws {
    let value = container.value("x")
    try value.replace(with: 1)
    let chown = try ChildProcess("chown", ["65534", value.path])
    #expect(try chown.wait(until: soon) == .exited(0))
    let error = #expect(throws: WormholeError.self) { try value.read() }
    #expect(error?.code == .notAValue)
  }

  @Test(
    "survives the failure of any system call of a write: old or new, and the next write works",
    arguments: [Errno.noSpace, .tooManyOpenFiles, .inputOutput, .accessDenied])
  func everyCallFails(error: Errno) throws {
    #if DEBUG
      let value = container.value("x")
      let writes: [@Sendable () throws -> Void] = [
        { try value.replace(with: 2) },
        { try value.replace(with: 2, durability: .durable) },
        { try value.update { $0 = 2 } },
        { try value.remove() },
      ]
      for (kind, write) in writes.enumerated() {
        try value.replace(with: 1)
        for place in 0..<(try Faults.calls(of: write)) {
          try value.replace(with: 1)
          var failed = false
          do {
            try Faults.$plan.withValue(.failing(place, with: error)) { try write() }
          } catch let error as WormholeError {
            failed = true
            #expect(!error.path.isEmpty, "\(error)")
          }
          let now = try value.read()
          let new: PropertyListValue? = kind == 3 ? nil : 2
          #expect(now == 1 || now == new, "write \(kind), call \(place), \(directory.listing)")
          if !failed { #expect(now == new, "write \(kind), call \(place)") }
        }
      }
      try value.replace(with: 3, durability: .durable)
      try value.update { $0 = 4 }
      #expect(Litter.entries(of: "x", in: directory) == ["held"], "\(directory.listing)")
    #endif
  }
}
