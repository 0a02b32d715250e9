import FoundationEssentials
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeEtcd
@testable import WormholeInspection

@Suite("The copy of a container", .blocking)
struct CopyTests {
  private let scene: CopyScene

  init() throws { scene = try CopyScene() }

  private func copy(_ source: SharedContainer, to place: String) throws -> SharedContainer {
    _ = try ContainerCopy(of: source).run(to: place, until: soon)
    return try scene.open(place)
  }

  /// From each kind of place to each kind.
  static let ways: [[TestEngine]] = TestEngine.available.flatMap { first in
    TestEngine.available.map { [first, $0] }
  }

  @Test("has everything that outlives processes, as its users find it", arguments: ways)
  func complete(way: [TestEngine]) throws {
    let source = try scene.container(way[0], "source")
    try scene.fill(source)
    let other = try copy(source, to: scene.place(way[1], "other"))
    // And back, so that nothing is lost on the way that only one kind has.
    let back = try copy(other, to: scene.place(way[0], "back"))
    let original = try scene.description(of: source)
    #expect(original.count > 40)
    for copy in [other, back] {
      let difference = try scene.description(of: copy).difference(from: original)
      #expect(difference.isEmpty, "\(copy.location)")
    }
  }

  @Test("is refused where there is something already, and changes nothing there")
  func occupied() throws {
    let source = try scene.container(.directory, "source")
    try source.value("x").replace(with: 1)
    for engine in TestEngine.available {
      let place = try scene.place(engine, "other")
      let other = try scene.container(engine, "other")
      try other.value("y").replace(with: 2)
      let error = #expect(throws: WormholeError.self) {
        try ContainerCopy(of: source).run(to: place, until: soon)
      }
      #expect(error?.code == .nameCollision)
      #expect(try other.valueIdentifiers() == ["y"])
      try removeOthers()
    }
    let file = scene.directory.path + "/file"
    try FileDescriptor.open(file, [.writeOnly, .create]).close()
    #expect(throws: WormholeError.self) { try ContainerCopy(of: source).run(to: file, until: soon) }
  }

  private func removeOthers() throws {
    let remove = try ChildProcess("rm", ["-rf", scene.directory.path + "/other"])
    _ = try remove.wait(until: soon)
  }

  @Test("cannot be opened before it is whole", arguments: TestEngine.available)
  func early(engine: TestEngine) throws {
    let source = try scene.container(.directory, "source")
    for number in 0..<3 { try source.value("v\(number)").replace(with: 1) }
    let place = try scene.place(engine, "other")
    let looks = Mutex(0)
    var copy = ContainerCopy(of: source)
    copy.progress = { _, _ in
      looks.withLock { $0 += 1 }
      if engine == .etcd {
        #expect(throws: WormholeError.self) { try scene.open(place) }
      } else {
        #expect(throws: Errno.noSuchFile) { try fileStatus(place) }
      }
    }
    _ = try copy.run(to: place, until: soon)
    #expect(looks.withLock { $0 } == 3)
    #expect(try scene.open(place).valueIdentifiers().count == 3)
  }

  @Test(
    "is of one moment, although the container is changed while it is read",
    arguments: TestEngine.available, TestEngine.available)
  func changed(from: TestEngine, to: TestEngine) throws {
    let source = try scene.container(from, "source")
    for name in ["a", "z"] { try source.value(name).replace(with: 0) }
    let attempts = Mutex(0)
    var copy = ContainerCopy(of: source)
    copy.progress = { keys, _ in
      // Between the two values that are always the same, in the first attempt.
      guard keys == 1,
        attempts.withLock({
          $0 += 1
          return $0
        }) == 1
      else { return }
      do { try source.update(["a", "z"]) { for name in ["a", "z"] { $0[name] = 1 } } } catch {
        Issue.record(error)
      }
    }
    let place = try scene.place(to, "other")
    _ = try copy.run(to: place, until: soon)
    let other = try scene.open(place)
    let found = try ["a", "z"].map { try other.value($0).read()?.intValue }
    // A directory is read again, etcd as it was.
    #expect(found == (from == .directory ? [1, 1] : [0, 0]))
  }

  @Test("is refused while a process is present, which is named", arguments: TestEngine.available)
  func used(engine: TestEngine) throws {
    let source = try scene.container(engine, "source")
    try source.value("x").replace(with: 1)
    let registration = try source.presence("worker").enter()
    let place = try scene.place(.directory, "other")
    var copy = ContainerCopy(of: source)
    let error = #expect(throws: WormholeError.self) { try copy.run(to: place, until: soon) }
    #expect(error?.description.contains("\(Program.processID)) uses it") == true)
    #expect(throws: Errno.noSuchFile) { try fileStatus(place) }
    copy.allowsUse = true
    _ = try copy.run(to: place, until: soon)
    #expect(try scene.open(place).value("x").read() == 1)
    registration.close()
  }

  @Test("has the files beside the container, and its logs")
  func beside() throws {
    let source = try scene.container(.directory, "source")
    let path = scene.directory.path + "/source/notes"
    try makeDirectory(path)
    try FileDescriptor.open(path + "/a", [.writeOnly, .create]).writeAll([1, 2])
    try source.log("l").append("first")
    try source.log("l").append("second")
    let other = try copy(source, to: scene.place(.directory, "other"))
    let copied = scene.directory.path + "/other/notes/a"
    #expect(
      try FileDescriptor.open(copied, .readOnly).readToEnd(expectedBytes: 2, maximumBytes: 9)
        == [1, 2])
    #expect(try other.log("l").append("third") == source.log("l").append("third"))
  }

  @Test("to etcd has the messages of a log, not what another program put beside them", .needsEtcd)
  func plantedMessage() throws {
    let source = try scene.container(.directory, "source")
    for number in 1...3 { #expect(try source.log("l").append("text") == number) }
    let planted = scene.directory.path + "/source/logs/l/" + LogDirectory.path(LogState.largest)
    try FileDescriptor.open(planted, [.writeOnly, .create])
      .writeAll(PropertyListValue("planted").binaryBytes())
    let other = try copy(source, to: scene.place(.etcd, "other"))
    let reader = try other.log("l").read()
    defer { reader.close() }
    for number in 1...3 { #expect(try reader.next(until: soon)?.number == number) }
    #expect(try other.log("l").append("next") == 4)
    #expect(try reader.next(until: soon)?.number == 4)
  }

  @Test("to etcd leaves nothing that is too large for it behind", .needsEtcd)
  func large() throws {
    let source = try scene.container(.directory, "source")
    try source.value("a").replace(with: 1)
    try source.value("b").replace(with: .string(String(repeating: "x", count: 2 << 20)))
    let place = try scene.place(.etcd, "other")
    let error = #expect(throws: WormholeError.self) { try copy(source, to: place) }
    #expect(error?.code == .tooLarge)
    let container = try EtcdContainer.unopened(EtcdLocation(place))
    #expect(try container.client.count(container.keys, until: soon) == 0)
    try source.value("b").remove()
    #expect(try copy(source, to: place).valueIdentifiers() == ["a"])
  }

  @Test(
    "to etcd does not take another program's keys for its own", .needsEtcd)
  func foreign() throws {
    let source = try scene.container(.directory, "source")
    let place = try scene.place(.etcd, "other")
    let container = try EtcdContainer.unopened(EtcdLocation(place))
    let key = container.key("z") + Array("theirs".utf8)
    _ = try container.until(soon).repeating(
      .init(if: [.absent(key)], then: [.put(key: key, value: [1])]))
    let error = #expect(throws: WormholeError.self) { try copy(source, to: place) }
    #expect(error?.code == .nameCollision)
    #expect(try container.client.count(container.keys, until: soon) == 1)
  }

  @Test("to etcd, made by a test, leaves nothing in the home directory", .needsEtcd)
  func home() throws {
    let container = try EtcdContainer.unopened(EtcdLocation(scene.place(.etcd, "other")))
    #expect(try container.localDirectory().hasPrefix(TemporaryDirectory.ofRun()))
  }

  @Test("to etcd expires when the original does", .needsEtcd)
  func expiry() throws {
    let source = try scene.container(.directory, "source")
    try source.value("x").replace(with: 1, expiresAfter: .seconds(3))
    let other = try copy(source, to: scene.place(.etcd, "other"))
    #expect(try other.value("x").read() == 1)
    try eventually("it has expired") { try other.value("x").read() == nil }
  }

  @Test("is not made if a piece of a file is missing", .needsEtcd)
  func damagedFile() throws {
    let source = try scene.container(.etcd, "source")
    try scene.fill(source)
    guard let container = source.engine as? EtcdContainer else { return }
    let pieces = KeyRange.prefix(container.key(.queue, "files", part: "/t/waiting/"))
    let piece = try #require(try container.client.read(pieces, until: soon).items.dropFirst().first)
      .key
    let deletion = EtcdTransaction(if: [.exists(piece)], then: [.delete(.key(piece))])
    #expect(try container.client.commit(deletion, until: soon).succeeded)
    let place = try scene.place(.directory, "other")
    let error = #expect(throws: WormholeError.self) { try copy(source, to: place) }
    #expect(error?.code == .damaged)
    #expect(throws: Errno.noSuchFile) { try fileStatus(place) }
    let left = try FileDescriptor.open(scene.directory.path, [.readOnly, .directory]).entries()
    #expect(left.map(\.name.text).filter { $0.hasPrefix("other") } == [])
  }

  @Test("takes no key for a path", .needsEtcd)
  func hostileKeys() throws {
    let source = try scene.container(.etcd, "source")
    try source.queue("q").sender("a").enqueue(1)
    guard let container = source.engine as? EtcdContainer else { return }
    let batch = "0000000000000001-a/../../../../x-1-5.plist"
    let parts = ["e/\(batch)", "d/\(batch)", "f/\(batch).0", "r/../\(batch)", "o/../\(batch).0"]
    let more = ["a/../../x", "u/../x", "t/../x", "e/..", "s/../x", "k/../x", "zz/y", ""]
    let keys = (parts + more).map { container.key(.queue, "q", part: "/" + $0) }
    let others = ["v/..", "v/%2E%2E", "v/%2E.", "own/..", "w/x", "v/a/../b", "p/../last"].map {
      Array(container.formatKey.dropLast(6)) + Array($0.utf8)
    }
    for key in keys + others {
      let bytes: [UInt8] = Array(repeating: 7, count: 40)
      _ = try container.until(soon).repeating(
        .init(if: [.absent(key)], then: [.put(key: key, value: bytes)]))
    }
    let before = try names(scene.directory.path)
    let other = try copy(source, to: scene.place(.directory, "other"))
    #expect(try names(scene.directory.path).subtracting(before) == ["other"])
    let place = scene.directory.path + "/other/queues/q"
    #expect(try names(place + "/pending").count == 1)
    #expect(try other.valueIdentifiers() == [".."])
    #expect(try names(scene.directory.path + "/other/values") == ["%2E."])
  }

  private func names(_ path: String) throws -> Set<String> {
    Set(try FileDescriptor.open(path, [.readOnly, .directory]).entries().map(\.name.text))
  }

  @Test("in order, even if all of it came to etcd in one step", .needsEtcd)
  func order() throws {
    let source = try scene.container(.directory, "source")
    for number in 0..<40 {
      try source.queue("q").sender(number % 2 == 0 ? "z" : "a").enqueue(PropertyListValue(number))
    }
    let other = try copy(source, to: scene.place(.etcd, "other"))
    let consumer = try other.queue("q").consume()
    var numbers: [Int] = []
    while let entry = try consumer.next(until: .now) {
      numbers.append(entry.payload.intValue ?? -1)
      try entry.acknowledge()
    }
    #expect(numbers == Array(0..<40))
    consumer.close()
  }

  #if DEBUG
    @Test(
      "by a process that is killed before any step is complete or not there, and can be made again",
      .waiting,
      arguments: TestEngine.available)
    func killed(engine: TestEngine) throws {
      let source = try scene.container(.directory, "source")
      for number in 0..<3 {
        try source.value("v\(number)").replace(with: PropertyListValue(number))
      }
      try source.queue("q").sender("a").enqueue(1, keepsReceipt: true)
      let counting = try Participant(scene.directory.path + "/source")
      let counted = try scene.place(engine, "counted")
      let calls = try #require(Int(try counting.ask("calls copy \(counted)")))
      try counting.end()
      var (made, tried) = (0, 0)
      // On etcd each waits for the end of a session.
      for step in TriedSteps.of(calls, atMost: engine == .etcd ? 10 : 30) {
        tried += 1
        let place = try scene.place(engine, "place-\(step)", lifetime: .seconds(2))
        let copier = try Participant(scene.directory.path + "/source")
        // If it is not killed, it made fewer calls than the one that was counted, which had to wait.
        let wasKilled = try copier.dies(of: "die \(step) copy \(place)")
        if try !wasKilled || isMade(place) {
          made += 1
        } else {
          try makeAgain(source, place)
        }
        let other = try scene.open(place)
        #expect(try other.valueIdentifiers().count == 3, "killed before call \(step)")
        #expect(
          try other.queue("q").sender("a").receipts().count == 1, "killed before call \(step)")
      }
      #expect(made * 2 < tried)
    }

    // a copier                                  another one
    // is stopped, and its session ends
    //                                           removes what it left, and copies there
    // goes on
    @Test(
      "to etcd is not changed by a process that was stopped in the middle of copying there",
      .waiting,
      .needsEtcd)
    func stopped() throws {
      let source = try scene.container(.directory, "source")
      for number in 0..<200 {
        try source.value("v\(number)").replace(with: .data(.init(count: 20_000)))
      }
      let place = try scene.place(.etcd, "place", lifetime: .seconds(2))
      let copier = try Participant(scene.directory.path + "/source")
      // After some of it was sent.
      try copier.tell("stop 200 copy \(place)")
      try copier.waitUntilStopped()
      for number in 0..<200 { try source.value("v\(number)").replace(with: 1) }
      try makeAgain(source, place)
      let container = try EtcdContainer.unopened(EtcdLocation(place))
      let before = try container.client.read(container.keys, until: soon).items
      try copier.send(.continue)
      #expect(try copier.answer().hasPrefix("error nameCollision"))
      #expect(try container.client.read(container.keys, until: soon).items == before)
      try copier.end()
    }

    private func isMade(_ place: String) throws -> Bool {
      if Engines.isMeant(by: place) {
        let container = try EtcdContainer.unopened(EtcdLocation(place))
        let format = try container.client.page(.key(container.formatKey), limit: 1, until: soon)
        return format.items.first?.value == Array("\(EtcdContainer.formatVersion)".utf8)
      }
      return try WormholeSystem.exists(place, at: Directory.current)
    }

    /// On etcd the session of the killed process ends first.
    private func makeAgain(_ source: SharedContainer, _ place: String) throws {
      try eventually("the place is free again") {
        do {
          _ = try ContainerCopy(of: source).run(to: place, until: soon)
          return true
        } catch let error as WormholeError where error.code == .nameCollision {
          return false
        }
      }
    }
  #endif
}
