import FoundationEssentials
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeInspection

@Suite("The snapshot of a directory in use", .blocking, .waiting, .serialized)
struct ContainerSnapshotTests {
  private let scene: CopyScene

  init() throws { scene = try CopyScene() }

  private var path: String { scene.directory.path }

  /// The snapshot of a container, and how it was made.
  private func snapshot(
    of source: SharedContainer, _ name: String = "snapshot",
    check: @escaping () throws -> Void = {}, copied: @escaping () throws -> Void = {}
  ) throws -> (container: SharedContainer, snapshot: ContainerSnapshot) {
    let target = try DirectoryTarget(path: path + "/" + name, group: nil)
    let snapshot = ContainerSnapshot(
      of: source, to: target, leavesOut: { _ in false }, check: check,
      copied: { _ in try copied() })
    try snapshot.make()
    try target.finish()
    return (try scene.open(path + "/" + name), snapshot)
  }

  @Test("of a quiet one is read once, and looked at once more")
  func quiet() throws {
    let source = try scene.container(.directory, "source")
    try scene.fill(source)
    try source.log("l").append("first")
    let (_, snapshot) = try snapshot(of: source)
    #expect(snapshot.passes == 2)
    #expect(snapshot.pauses == 0)
  }

  @Test("reads again only what was changed, and is as it was at the end")
  func again() throws {
    let source = try scene.container(.directory, "source")
    for number in 0..<20 { try source.value("v\(number)").replace(with: 0) }
    for number in 0..<20 { try source.log("l").append(PropertyListValue(number)) }
    try source.value("gone").replace(with: 0)
    let copied = Mutex(0)
    let change = {
      copied.withLock { $0 += 1 }
      guard copied.withLock({ $0 }) == 21 else { return }
      // All values are read, and none of the rest.
      try source.value("v3").replace(with: 3)
      try source.value("new").replace(with: 1)
      try source.value("gone").remove()
      try source.log("l").append(20)
    }
    let (other, snapshot) = try snapshot(of: source, copied: change)
    #expect(snapshot.passes == 3)
    // Each that is new once.
    #expect(copied.withLock { $0 } == 22)
    #expect(try other.value("v3").read() == 3)
    #expect(try other.value("new").read() == 1)
    #expect(try other.value("gone").read() == nil)
    #expect(try other.log("l").append("next") == source.log("l").append("next"))
  }

  @Test(
    "gives notice at the first change that it meets, and takes it back, in a long pass early",
    arguments: [false, true])
  func notice(isLong: Bool) throws {
    let source = try scene.container(.directory, "source")
    let values = (0..<20).map { source.value("v\($0)") }
    for value in values { try value.replace(with: 0) }
    let copied = Mutex(0)
    let seen = Mutex(0)
    let change = {
      let number = copied.withLock {
        $0 += 1
        return $0
      }
      if number == 1 {
        let now = realTime()
        for value in values {
          // The clock of files may be a tick behind.
          try eventually("its file is newer") {
            try value.replace(with: 1)
            return try fileStatus(value.path).modifiedMoment > now
          }
        }
      }
      guard number <= 20 else { return }
      if try hasSign(source) { seen.withLock { $0 += 1 } }
      // Others may look a second late, and the sign stays as long again.
      if isLong, number == 10 { pauseThread(CopyPauseFile.notice * 2) }
      if isLong, number == 20 { #expect(try !hasSign(source), "in a long pass") }
    }
    let (other, _) = try snapshot(of: source, copied: change)
    #expect(seen.withLock { $0 } > 0, "in the first pass")
    #expect(try !hasSign(source))
    #expect(try other.value("v0").read() == 1)
  }

  // Three processes without a pause: one makes a history, of which each moment is known; two move units
  // between values, whose sum stays the same.
  @Test("is a moment of the history of processes that never rest, and ends")
  func busy() throws {
    let source = try scene.container(.directory, "source")
    let accounts = (0..<40).map { "account-\($0)" }
    for name in accounts { try source.value(name).replace(with: 0) }
    for number in 0..<200 { try source.value("still-\(number)").replace(with: 7) }
    let writers = try (0..<3).map { _ in try Participant(path + "/source") }
    try writers[0].tell("copy-history 60")
    for writer in writers.dropFirst() {
      try writer.tell("transfer \(accounts.joined(separator: ",")) 100000000")
    }
    try eventually("all of them write") {
      try source.value("history-59").read() != nil
        && accounts.contains { try source.value($0).read() != 0 }
    }
    let (other, _) = try snapshot(of: source)
    let sum = try accounts.reduce(0) { try $0 + (other.value($1).read()?.intValue ?? -1_000) }
    #expect(sum == 0)
    try SnapshotHistory(count: 60).check(other)
    for writer in writers { try writer.end() }
    #expect(try !hasSign(source))
  }

  /// Not in the gate: `SNAPSHOTS=100 swift test --filter ContainerSnapshotTests` makes so many.
  @Test(
    "takes at most twice the time of a quiet one, with 10,000 names and messages and 1,000 changes a second",
    .enabled(if: Program.environment("SNAPSHOTS") != nil))
  func full() throws {
    let source = try scene.container(.directory, "source")
    let count = 10_000
    for number in 0..<count { try source.value("history-\(number)").replace(with: 0) }
    let log = source.log("history")
    for number in 0..<count { try log.append(PropertyListValue(number - count)) }
    let quiet = try (0..<3).map { _ in try backUp(source) }.min() ?? .zero
    print("quiet: \(quiet)")
    let writer = try Participant(path + "/source")
    try writer.tell("copy-history \(count) 1000")
    for number in 0..<(Int(Program.environment("SNAPSHOTS") ?? "") ?? 1) {
      let taken = try backUp(source)
      print("\(number): \(taken), \(taken / quiet)")
      #expect(taken <= quiet * 2)
      let other = try scene.open(path + "/restored")
      try SnapshotHistory(count: count).check(other)
    }
    try writer.end()
  }

  /// Backs a container up, and restores it afterwards, to be looked at.
  ///
  /// - Returns: How long the backup took.
  private func backUp(_ source: SharedContainer) throws -> Duration {
    _ = try ChildProcess("rm", ["-rf", path + "/restored"]).wait(until: soon)
    let file = try FileDescriptor.open(path + "/archive", [.readWrite, .create, .truncate])
    let begin = ContinuousClock.now
    _ = try ContainerBackup(of: source).run(
      "archive", to: file.rawValue, stagedIn: path, until: begin + .seconds(600))
    let taken = begin.duration(to: .now)
    try restore()
    return taken
  }

  private func restore() throws {
    let file = try FileDescriptor.open(path + "/archive", .readOnly)
    _ = try ContainerBackup.restore(
      "archive", from: file.rawValue, to: path + "/restored", group: nil, stagedIn: path,
      until: soon)
  }

  private func hasSign(_ container: SharedContainer) throws -> Bool {
    try exists(CopyPauseFile.path, at: container.root.handle().descriptor.rawValue)
  }

  private func waiting(in queue: PlainQueue) throws -> [Int] {
    try queue.outstanding().map { $0.payload.intValue ?? -1 }.sorted()
  }

  private func messages(in log: PlainLog) throws -> [Int] {
    let reader = try log.read()
    defer { reader.close() }
    var numbers: [Int] = []
    while let message = try reader.next(until: .now) {
      numbers.append(message.payload.intValue ?? -1)
    }
    return numbers
  }

  @Test("makes nobody wait for a copier that was stopped or killed", arguments: [false, true])
  func stopped(isKilled: Bool) throws {
    let source = try scene.container(.directory, "source")
    try source.value("x").replace(with: 0)
    let copier = try Participant(path + "/source")
    #expect(try copier.ask("copy-pause now") == "holding")
    let user = try Participant(path + "/source")
    if isKilled {
      try copier.end()
    } else {
      try copier.send(.stop)
      try copier.waitUntilStopped()
    }
    #expect(try user.ask("add x 1") == "done")
    // A look that costs nobody anything removes what a dead one has left.
    _ = try SharedContainer(path: path + "/source", group: nil)
    #expect(try !hasSign(source))
    if !isKilled { try copier.end() }
    #expect(try source.value("x").read() == 1)
  }

  @Test("holds changes back during a pause: those that can wait, of all who know of it")
  func pause() throws {
    let source = try scene.container(.directory, "source")
    try source.value("x").replace(with: 0)
    let root = source.root
    #expect(!waits(root))
    let pause = try CopyPause(in: root, at: root.handle().descriptor.rawValue)
    let late = try SharedContainer(path: path + "/source", group: nil).root
    #expect(!waits(late))
    // It looks once a second.
    _ = try root.rechecked(root.handle())
    try pause.run {
      #expect(waits(late) && waits(root))
      #expect(!waits(root, until: .now))
    }
    #expect(!waits(late) && !waits(root))
    // A second copier has the pauses of the first.
    #expect(throws: Errno.alreadyExists) {
      try CopyPause(in: late, at: late.handle().descriptor.rawValue)
    }
    pause.end()
    #expect(try !hasSign(source))
  }

  @Test("is seen by a process that reads a missing name all the time")
  func missingName() throws {
    let source = try scene.container(.directory, "source")
    let pause = try CopyPause(in: source.root, at: source.root.handle().descriptor.rawValue)
    let user = try SharedContainer(path: path + "/source", group: nil)
    pause.end()
    let later = try CopyPause(in: source.root, at: source.root.handle().descriptor.rawValue)
    try later.run {
      try eventually("it waits") {
        let missing = try user.value("missing").read()
        return missing == nil && waits(user.root)
      }
    }
    later.end()
  }

  private func waits(_ root: ContainerRoot, until deadline: ContinuousClock.Instant? = nil) -> Bool
  {
    var copyPause = CopyPauseFile.CopyPauseWait()
    return copyPause.mustWait(in: root, until: deadline ?? soon)
  }

  @Test("is waited for again although a pause was too long, before its copier gives up")
  func overdue() throws {
    let source = try scene.container(.directory, "source")
    let root = source.root
    let slow = try CopyPause(in: root, at: root.handle().descriptor.rawValue)
    let user = try SharedContainer(path: path + "/source", group: nil).root
    try slow.run {
      var copyPause = CopyPauseFile.CopyPauseWait()
      copyPause.wait(in: user, until: nil)
    }
    slow.end()
    let next = try CopyPause(in: root, at: root.handle().descriptor.rawValue)
    try next.run {
      try eventually("it waits again") {
        _ = try user.rechecked(user.handle())
        return waits(user)
      }
    }
    next.end()
  }

  @Test("ends when its deadline has passed, in the middle of a pass, and leaves nothing")
  func deadline() throws {
    let source = try scene.container(.directory, "source")
    for number in 0..<5 { try source.value("v\(number)").replace(with: 0) }
    var copy = ContainerCopy(of: source)
    let looks = Mutex(0)
    let deadline = ContinuousClock.now + .milliseconds(300)
    copy.progress = { _, _ in
      looks.withLock { $0 += 1 }
      while ContinuousClock.now < deadline { pauseThread(.milliseconds(10)) }
    }
    let error = #expect(throws: WormholeError.self) {
      try copy.run(to: path + "/other", until: deadline)
    }
    #expect(error?.code == .timedOut)
    #expect(looks.withLock { $0 } == 1)
    let names = try FileDescriptor.open(path, [.readOnly, .directory]).entries().map(\.name.text)
    #expect(names.filter { $0.hasPrefix("other") } == [])
  }

  @Test("keeps the names of files byte for byte")
  func names() throws {
    let source = try scene.container(.directory, "source")
    let names: [[UInt8]] = [
      Array("caf".utf8) + [0xE9], [0xFF], [0xC3], Array("a\nb".utf8), Array("é".utf8),
    ]
    let handle = try source.root.handle()
    let directory = handle.descriptor.rawValue
    for (number, name) in names.enumerated() {
      let place = FileName(bytes: name)
      if number.isMultiple(of: 2) {
        try FileDescriptor.open(place, at: directory, [.writeOnly, .create]).writeAll(name)
      } else {
        try makeDirectory(place, at: directory, mode: 0o700)
        let below = FileName(bytes: name + [0x2F] + name)
        try FileDescriptor.open(below, at: directory, [.writeOnly, .create]).writeAll(name)
      }
    }
    let archive = try FileDescriptor.open(path + "/archive", [.writeOnly, .create])
    _ = try ContainerBackup(of: source).run(
      "archive", to: archive.rawValue, stagedIn: path, until: soon)
    try restore()
    _ = try ContainerCopy(of: source).run(to: path + "/copied", until: soon)
    for place in ["restored", "copied"] {
      let other = try FileDescriptor.open(path + "/" + place, [.readOnly, .directory])
      for (number, name) in names.enumerated() {
        let file = FileName(bytes: number.isMultiple(of: 2) ? name : name + [0x2F] + name)
        let content = try FileDescriptor.open(file, at: other.rawValue, .readOnly)
          .readToEnd(expectedBytes: 8, maximumBytes: 64)
        #expect(content == name, "\(place) \(name)")
      }
    }
  }
}

/// What a participant's "copy-history" has made by any moment.
private struct SnapshotHistory {
  let count: Int

  /// Checks that a container is as it was after one of the changes.
  func check(_ container: SharedContainer) throws {
    let values = try (0..<count).map {
      try container.value("history-\($0)").read()?.intValue ?? 0
    }
    let messages = try messages(in: container.log("history"))
    let entries = try container.queue("history").outstanding().compactMap(\.payload.intValue)
    let last = max(values.max() ?? 0, messages.max() ?? 0, entries.max() ?? 0)
    var expected = [Int](repeating: 0, count: count)
    if last > 0 {
      for number in 1...last where number % 10 != 0 && number % 100 != 5 {
        expected[number % count] = number
      }
    }
    #expect(values == expected, "after change \(last)")
    #expect(entries.sorted() == Array(stride(from: 5, through: last, by: 100)))
    // The oldest ones are taken away.
    let made = messages.filter { $0 > 0 }
    #expect(made.last ?? 0 == last / 10 * 10)
    #expect(zip(made, made.dropFirst()).allSatisfy { $1 == $0 + 10 })
  }

  private func messages(in log: PlainLog) throws -> [Int] {
    let reader = try log.read()
    defer { reader.close() }
    var numbers: [Int] = []
    while let message = try reader.next(until: .now) {
      numbers.append(message.payload.intValue ?? -1)
    }
    return numbers
  }
}
