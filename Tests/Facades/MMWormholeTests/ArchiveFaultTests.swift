import Foundation
import MMWormhole
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeWorkshop

/// Hostile entries in the place of an archive, and processes that are killed or stopped between
/// their steps; all of them with EVERY_STEP.
@Suite("The archive of a message under faults", .blocking)
struct ArchiveFaultTests {
  let scene: AppScene

  init() throws { scene = try AppScene() }

  // MARK: Hostile bytes

  private func hostile(_ good: [UInt8]) throws -> [[UInt8]] {
    let list: [PropertyListValue] = [
      "text", [:], ["$archiver": "NSKeyedArchiver"],
      [
        "$archiver": "NSKeyedArchiver", "$version": 100_000, "$objects": ["$null"],
        "$top": ["root": ["CF$UID": 7]],
      ],
      [
        "$archiver": "NSKeyedArchiver", "$version": 100_000, "$top": ["root": ["CF$UID": 1]],
        "$objects": [
          "$null", ["$class": ["CF$UID": 2], "NS.objects": [["CF$UID": 1]]],
          ["$classname": "NSArray", "$classes": ["NSArray", "NSObject"]],
        ],
      ],
    ]
    let deep = Array("bplist00".utf8) + Array(repeating: 0xA1, count: 9_000)
    return try list.map { try $0.binaryBytes() } + [[], Array("garbage".utf8), deep]
      + (1..<good.count).map { Array(good.prefix($0)) }
  }

  @Test("is an error if it is hostile or cut short, and the next message mends it")
  func hostile() throws {
    let errors = Errors()
    let messenger = MMWormholeFileTransiting(
      container: try scene.directory.container(), optionalDirectory: "d")
    messenger.errorHandler = { errors.add($0) }
    #expect(messenger.writeMessageObject(["key": "tea"] as NSDictionary, forIdentifier: "a"))
    let path = try #require(messenger.filePath(forIdentifier: "a"))
    let good = [UInt8](try Data(contentsOf: URL(filePath: path)))
    for bytes in try hostile(good) {
      try Data(bytes).write(to: URL(filePath: path), options: .atomic)
      errors.removeAll()
      #expect(messenger.messageObject(forIdentifier: "a") == nil, "\(bytes.count)")
      #expect(errors.all.count == 1 && errors.all[0].contains(path), "\(errors.all)")
    }
    errors.removeAll()
    #expect(messenger.writeMessageObject("milk", forIdentifier: "a"))
    #expect(messenger.messageObject(forIdentifier: "a") as? String == "milk")
    #expect(errors.all == [])
    #expect(try Data(contentsOf: URL(filePath: path)).starts(with: "bplist00".utf8))
  }

  @Test("with one changed byte is read or refused, and never ends the process")
  func damaged() throws {
    var random = TestSeed.next("WORMHOLE_ARCHIVE_SEED").generator
    let messenger = MMWormholeFileTransiting(
      container: try scene.directory.container(), optionalDirectory: "d")
    messenger.errorHandler = { _ in }
    let message = ["a": NSSet(array: [1, "b"]), "c": [Date(), UUID()]] as NSDictionary
    #expect(messenger.writeMessageObject(message, forIdentifier: "a"))
    let path = try #require(messenger.filePath(forIdentifier: "a"))
    let good = [UInt8](try Data(contentsOf: URL(filePath: path)))
    for place in [good.indices, good.indices].joined() {
      var bytes = good
      bytes[place] = UInt8.random(in: 0...255, using: &random)
      try Data(bytes).write(to: URL(filePath: path), options: .atomic)
      _ = messenger.messageObject(forIdentifier: "a")
    }
    #expect(messenger.writeMessageObject("milk", forIdentifier: "a"))
    #expect(messenger.messageObject(forIdentifier: "a") as? String == "milk")
  }

  @Test(
    "is refused if another kind of entry is in its place, and nothing is written through it",
    arguments: ["fifo", "link", "directory"])
  func otherKinds(kind: String) throws {
    let errors = Errors()
    let messenger = MMWormholeFileTransiting(
      container: try scene.directory.container(), optionalDirectory: "d")
    messenger.errorHandler = { errors.add($0) }
    let path = try #require(messenger.filePath(forIdentifier: "a"))
    let target = scene.directory.path + "/target"
    try "kept".write(toFile: target, atomically: true, encoding: .utf8)
    switch kind {
    case "fifo": #expect(mkfifo(path, 0o600) == 0)
    case "link":
      try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target)
    default:
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }
    #expect(messenger.writeMessageObject("tea", forIdentifier: "a"), "the value is the message")
    #expect(messenger.messageObject(forIdentifier: "a") == nil)
    #expect(errors.all.count == 2 && errors.all[0].contains(path), "\(errors.all)")
    #expect(try String(contentsOfFile: target, encoding: .utf8) == "kept")
    if kind == "link" { unlink(path) } else { try FileManager.default.removeItem(atPath: path) }
    #expect(messenger.messageObject(forIdentifier: "a") as? String == "tea")
    #expect(FileManager.default.fileExists(atPath: path))
  }

  // MARK: Links of other members

  /// A messenger of a container that a Unix group shares, and a directory outside with archives.
  private func shared(_ errors: Errors) throws -> (
    MMWormholeFileTransiting, place: String, outside: TemporaryDirectory
  ) {
    let (place, outside) = (scene.directory.path + "/shared", try TemporaryDirectory())
    let files = FileManager.default
    try files.createDirectory(atPath: place, withIntermediateDirectories: false)
    try files.setAttributes([.posixPermissions: 0o2770], ofItemAtPath: place)
    for path in ["a.archive", "e/a.archive", "e/b.archive"] {
      let url = URL(filePath: outside.path + "/" + path)
      try files.createDirectory(
        at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data("kept".utf8).write(to: url)
    }
    let messenger = MMWormholeFileTransiting(
      container: try SharedContainer(url: URL(filePath: place), access: .group),
      optionalDirectory: "d/e")
    messenger.errorHandler = { errors.add($0) }
    return (messenger, place, outside)
  }

  private func expectUntouched(_ outside: TemporaryDirectory) throws {
    for (path, names) in [("", ["a.archive", "e"]), ("/e", ["a.archive", "b.archive"])] {
      let found = try FileManager.default.contentsOfDirectory(atPath: outside.path + path)
      #expect(found.sorted() == names)
      for name in names where name != "e" {
        let content = try String(contentsOfFile: "\(outside.path)\(path)/\(name)", encoding: .utf8)
        #expect(content == "kept")
      }
    }
  }

  @Test(
    "is neither written nor removed outside if a link is planted in the place of its directory",
    arguments: ["d", "d/e"])
  func planted(link: String) throws {
    let errors = Errors()
    let (messenger, place, outside) = try shared(errors)
    let path = place + "/" + link
    try FileManager.default.createDirectory(
      atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: path, withDestinationPath: outside.path + link.dropFirst())
    #expect(messenger.writeMessageObject("tea", forIdentifier: "a"))
    #expect(messenger.filePath(forIdentifier: "a") == nil)
    messenger.deleteContentForAllMessages()
    try expectUntouched(outside)
    #expect(errors.all.count >= 3, "\(errors.all)")
    unlink(path)
    #expect(messenger.writeMessageObject("milk", forIdentifier: "a"))
    #expect(messenger.messageObject(forIdentifier: "a") as? String == "milk")
  }

  @Test("is not written outside, either, while a link and the directory change places all the time")
  func exchanged() throws {
    let (messenger, place, outside) = try shared(Errors())
    let path = try #require(messenger.messagePassingDirectoryPath())
    let link = place + "/link"
    try FileManager.default.createSymbolicLink(
      atPath: link, withDestinationPath: outside.path + "/e")
    let here = Directory.current
    let isOver = Atomic(false)
    let hasEnded = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      while !isOver.load(ordering: .relaxed) {
        // An exchange that fails changes nothing.
        try? rename(path, at: here, to: link, at: here, .exchange)
      }
      hasEnded.signal()
    }
    for number in 0..<100 {
      // Whether each archive is written does not matter here.
      _ = messenger.writeMessageObject("tea \(number)", forIdentifier: "a")
      if number.isMultiple(of: 10) { messenger.deleteContentForAllMessages() }
    }
    isOver.store(true, ordering: .relaxed)
    hasEnded.wait()
    try expectUntouched(outside)
  }

  // MARK: Killed and stopped processes

  @Test(
    "is settled by the next operation after a kill at any system call",
    arguments: ["pass a text new", "clear a", "read a"])
  func killed(command: String) throws {
    let (reader, foreign) = (try scene.start(), try scene.start())
    let path = try reader.mm("directory -") + "/a.archive"
    let new = ["pass": "new", "clear": "nil", "read": "foreign"][command.prefix { $0 != " " }]
    let (before, after) = (command == "read a" ? "foreign" : "old", try #require(new))
    func prepare() throws {
      #expect(try reader.mm("pass a text old") == "done")
      if command == "read a" {
        #expect(try foreign.ask("archive-write \(path) foreign") == "done")
      }
    }
    try prepare()
    let count = try scene.start().calls(of: "mm-\(command)")
    var kills = 0
    for step in TriedSteps.of(count + 20, atMost: 12) {
      try prepare()
      let victim = try scene.start()
      guard try victim.dies(of: "die \(step + 1) mm-\(command)", answering: nil) else { break }
      kills += 1
      let archived = try foreign.ask("archive-read \(path)")
      #expect([before, after].contains(archived), "step \(step)")
      let message = try reader.mm("read a")
      #expect([before, after].contains(message), "step \(step)")
      // The value is changed first.
      if archived == after { #expect(message == after, "step \(step)") }
      #expect(try foreign.ask("archive-read \(path)") == message, "step \(step)")
      #expect(try reader.mm("read a") == message, "step \(step)")
    }
    #expect(kills > 2, "\(count) calls")
  }

  @Test("is never replaced by the older message of a process that was stopped and goes on")
  func stopped() throws {
    var random = TestSeed.next("WORMHOLE_ARCHIVE_SEED").generator
    let (reader, foreign) = (try scene.start(), try scene.start())
    let path = try reader.mm("directory -") + "/a.archive"
    #expect(try reader.mm("pass a text old") == "done")
    let count = try scene.start().calls(of: "mm-pass a text late")
    var stops = 0
    let rounds = TriedSteps.isThorough ? 60 : 15
    for round in 0..<rounds {
      // One that it takes before its own.
      if round.isMultiple(of: 2) {
        #expect(try foreign.ask("archive-write \(path) milk\(round)") == "done")
      }
      let late = try scene.start()
      let step = Int.random(in: 1...count, using: &random)
      // It may be done with fewer calls.
      guard try late.stops(in: "stop \(step) mm-pass a text late\(round)") else { continue }
      stops += 1
      let isPublished = try scene.wormhole("read", "wormhole/a") == "\"late\(round)\""
      #expect(try reader.mm("pass a text new\(round)") == "done")
      #expect(try foreign.ask("archive-read \(path)") == "new\(round)")
      try late.send(.continue)
      #expect(try late.answer() == "done")
      // It is the message only if it was passed after the other one.
      let message = try reader.mm("read a")
      #expect(message == "new\(round)" || !isPublished && message == "late\(round)", "step \(step)")
      #expect(try foreign.ask("archive-read \(path)") == message, "step \(step)")
    }
    #expect(stops > rounds / 6)
  }

  // late                                another process
  // reads: takes the archive
  // (stopped before one of its calls)
  //                                     passes a newer message
  // goes on                             still has the newer one
  @Test("does not replace a newer message when the process that takes it was stopped meanwhile")
  func stoppedReader() throws {
    let (reader, foreign) = (try scene.start(), try scene.start())
    let path = try reader.mm("directory -") + "/a.archive"
    #expect(try reader.mm("pass a text old") == "done")
    #expect(try foreign.ask("archive-write \(path) milk") == "done")
    let count = try scene.start().calls(of: "mm-read a")
    var stops = 0
    for step in TriedSteps.of(count, atMost: 12) {
      #expect(try foreign.ask("archive-write \(path) milk\(step)") == "done")
      let late = try scene.start()
      guard try late.stops(in: "stop \(step + 1) mm-read a") else { continue }
      stops += 1
      #expect(try reader.mm("pass a text new\(step)") == "done")
      try late.send(.continue)
      #expect(["milk\(step)", "new\(step)"].contains(try late.answer()), "step \(step)")
      #expect(try reader.mm("read a") == "new\(step)", "step \(step)")
      #expect(try foreign.ask("archive-read \(path)") == "new\(step)", "step \(step)")
    }
    #expect(stops > 1)
  }

  // late                                other processes
  // passes a message, which is read
  // (stopped before one of its calls)
  //                                     one writes or removes the archive, another takes that
  // goes on                             still has what it has taken
  @Test(
    "does not come back when the process that gives it was stopped, and another one wrote",
    arguments: ["pass a text late", "clear a"])
  func stoppedGiver(command: String) throws {
    let (reader, foreign) = (try scene.start(), try scene.start())
    let path = try reader.mm("directory -") + "/a.archive"
    #expect(try reader.mm("pass a text old") == "done")
    let count = try scene.start().calls(of: "mm-\(command)")
    var stops = 0
    for step in TriedSteps.of(count, atMost: 12) {
      #expect(try reader.mm("pass a text old\(step)") == "done")
      let late = try scene.start()
      guard try late.stops(in: "stop \(step + 1) mm-\(command)") else { continue }
      let isChanged = try reader.mm("read a") != "old\(step)"
      #expect(try foreign.ask("archive-write \(path) milk\(step)") == "done")
      let taken = try reader.mm("read a")
      #expect(taken == "milk\(step)", "step \(step)")
      try late.send(.continue)
      #expect(try late.answer() == "done")
      let last = try reader.mm("read a")
      if isChanged {
        stops += 1
        #expect(last == taken, "step \(step)")
      }
      #expect(try foreign.ask("archive-read \(path)") == last, "step \(step)")
    }
    #expect(stops > 1)
  }

  /// Each writer counts, so each reader sees the numbers of one writer in ascending order.
  @Test("shows every reader the messages of each writer in their order")
  func order() throws {
    var random = TestSeed.next("WORMHOLE_ARCHIVE_SEED").generator
    let sides = try (0..<2).map { _ in try scene.start() }
    // The first of them to answer has made the container.
    let path = try sides[0].mm("directory -") + "/a.archive"
    let heard = Recorder()
    let listener = MMWormhole(
      container: try SharedContainer(path: scene.container), optionalDirectory: "wormhole")
    listener.listenForMessage(withIdentifier: "a") { heard.add($0) }
    let foreign = try scene.start()
    var seen: [[String]] = [[], []]
    for number in 1...300 {
      var asked: [Participant] = []
      if Bool.random(using: &random) {
        try foreign.tell("archive-write \(path) foreign:\(number)")
        asked.append(foreign)
      }
      for (side, participant) in sides.enumerated() where Bool.random(using: &random) {
        try participant.tell("mm-pass a text side\(side):\(number)")
        asked.append(participant)
      }
      for participant in asked { #expect(try participant.answer() == "done") }
      seen[0].append(try sides[0].mm("read a"))
      seen[1].append(try foreign.ask("archive-read \(path)"))
    }
    let last = try sides[0].mm("read a")
    #expect(try foreign.ask("archive-read \(path)") == last)
    try eventually("the last one is heard") { heard.all.last == last }
    for (reader, messages) in zip(["value", "archive", "listener"], seen + [heard.all]) {
      for writer in ["foreign", "side0", "side1"] {
        let numbers = messages.filter { $0.hasPrefix(writer + ":") }.compactMap {
          Int($0.dropFirst(writer.utf8.count + 1))
        }
        let falls = numbers.indices.dropFirst().filter { numbers[$0] < numbers[$0 - 1] }
        #expect(falls == [], "\(reader), \(writer): \(numbers)")
        #expect(!numbers.isEmpty)
      }
    }
  }
}
