import FoundationEssentials
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// The state that one accessor gets and leaves, in one process.
@Suite("Coordinated access", .blocking)
struct AccessTests {
  let directory: TemporaryDirectory
  let coordinator = FileCoordinator()

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func url(_ name: String) -> URL { URL(filePath: directory.path + "/" + name) }

  private func names(_ path: String = "") throws -> [String] { try directory.names(path) }

  private func text(_ name: String) throws -> String {
    try String(contentsOf: url(name), encoding: .utf8)
  }

  @Test("The accessor's result is published when it returns, and nothing is left beside it")
  func published() throws {
    try Data("old".utf8).write(to: url("a.txt"))
    try coordinator.coordinate(writingItemAt: url("a.txt")) { copy in
      #expect(copy.lastPathComponent == "a.txt")
      #expect(try String(contentsOf: copy, encoding: .utf8) == "old")
      try Data("new".utf8).write(to: copy)
      #expect(try text("a.txt") == "old")
      #expect(try names().count == 2)
    }
    #expect(try text("a.txt") == "new")
    #expect(try names() == ["a.txt"], "\(directory.listing)")
  }

  @Test("An atomic save into the accessor's URL is published like a plain write")
  func atomicSave() throws {
    try coordinator.coordinate(writingItemAt: url("a.txt")) { copy in
      try Data("new".utf8).write(to: copy, options: .atomic)
    }
    #expect(try text("a.txt") == "new")
    #expect(try names() == ["a.txt"], "\(directory.listing)")
  }

  @Test("An accessor that throws publishes nothing and leaves nothing")
  func thrown() throws {
    struct Refused: Error {}
    try Data("old".utf8).write(to: url("a.txt"))
    #expect(throws: Refused.self) {
      try coordinator.coordinate(writingItemAt: url("a.txt")) { copy in
        try Data("new".utf8).write(to: copy)
        throw Refused()
      }
    }
    #expect(try text("a.txt") == "old")
    #expect(try names() == ["a.txt"], "\(directory.listing)")
  }

  @Test(
    "Removing the copy removes the item",
    arguments: [.forDeleting, [], .forMerging] as [WritingOptions])
  func removed(options: WritingOptions) throws {
    try Data("old".utf8).write(to: url("a.txt"))
    try coordinator.coordinate(writingItemAt: url("a.txt"), options: options) { copy in
      try FileManager.default.removeItem(at: copy)
      #expect(try text("a.txt") == "old")
    }
    #expect(try names() == [], "\(directory.listing)")
  }

  @Test("A copy that was moved away, with a report, takes its item with it")
  func movedCopy() throws {
    try Data("old".utf8).write(to: url("a.txt"))
    try coordinator.coordinate(writingItemAt: url("a.txt"), options: .makingDirectory) { copy in
      try FileManager.default.moveItem(at: copy, to: url("b.txt"))
      coordinator.item(at: copy, didMoveTo: url("b.txt"))
    }
    #expect(try names() == ["b.txt"], "\(directory.listing)")
    #expect(try text("b.txt") == "old")
  }

  /// With forDeleting, the item used to come back to its place.
  @Test(
    "What an accessor does to the item at its own place stays done",
    arguments: [WritingOptions.forDeleting, [], .forMerging, .forReplacing, .forMoving],
    [false, true])
  func ownPlace(options: WritingOptions, ofDirectory: Bool) throws {
    let item = url("d")
    for trashed in ["trash", nil] {
      if ofDirectory {
        try makeDirectory(["one": "1"])
      } else {
        try Data("1".utf8).write(to: item)
      }
      try coordinator.coordinate(writingItemAt: item, options: options) { _ in
        if let trashed {
          try FileManager.default.moveItem(at: item, to: url(trashed))
        } else {
          try FileManager.default.removeItem(at: item)
        }
      }
      #expect(try names() == ["trash"], "\(directory.listing)")
    }
    #expect(try text(ofDirectory ? "trash/one" : "trash") == "1")
  }

  @Test("An item that is changed in place is the same file, and readers wait for the end")
  func inPlace() throws {
    try Data("old".utf8).write(to: url("a.txt"))
    try link(url("a.txt").path, at: Directory.current, to: url("b").path, at: Directory.current)
    try coordinator.coordinate(writingItemAt: url("a.txt"), options: .inPlace) { place in
      #expect(place.path == url("a.txt").path)
      let file = try FileDescriptor.open(place.path, [.writeOnly, .append])
      try file.writeAll(Array(" new".utf8))
      let error = #expect(throws: WormholeError.self) {
        try FileCoordinator().coordinate(readingItemAt: url("a.txt"), until: .now) { _ in }
      }
      #expect(error?.code == .timedOut)
    }
    #expect(try text("b") == "old new")
    #expect(try names() == ["a.txt", "b"], "\(directory.listing)")
  }

  @Test("To replace an item the accessor finds nothing")
  func replacing() throws {
    try Data("old".utf8).write(to: url("a.txt"))
    try coordinator.coordinate(writingItemAt: url("a.txt"), options: .forReplacing) { copy in
      #expect(!FileManager.default.fileExists(atPath: copy.path))
      try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: false)
    }
    #expect(try names("a.txt") == [])
    #expect(try names() == ["a.txt"], "\(directory.listing)")
  }

  @Test("A directory is published in one step, whatever was changed in its copy")
  func directoryItem() throws {
    try makeDirectory(["one": "1", "two": "2"])
    try coordinator.coordinate(writingItemAt: url("d")) { copy in
      try Data("new".utf8).write(to: copy.appending(path: "one"))
      try Data("3".utf8).write(to: copy.appending(path: "three"))
      try FileManager.default.removeItem(at: copy.appending(path: "two"))
      #expect(try names("d") == ["one", "two"])
    }
    #expect(try names("d") == ["one", "three"])
    #expect(try text("d/one") == "new")
    #expect(try names() == ["d"], "\(directory.listing)")
  }

  private func makeDirectory(_ files: [String: String]) throws {
    try FileManager.default.createDirectory(at: url("d"), withIntermediateDirectories: false)
    for (name, text) in files { try Data(text.utf8).write(to: url("d/" + name)) }
  }

  @Test("Others changed entries of a directory: nothing is published, the entries are named")
  func conflict() throws {
    try makeDirectory(["one": "1", "two": "2"])
    let error = #expect(throws: WormholeError.self) {
      try coordinator.coordinate(writingItemAt: url("d")) { copy in
        try Data("mine".utf8).write(to: copy.appending(path: "one"))
        try FileCoordinator().coordinate(writingItemAt: url("d/two")) {
          try Data("theirs".utf8).write(to: $0)
        }
        try Data("4".utf8).write(to: url("d/four"))
      }
    }
    #expect(error?.code == .conflict)
    #expect(error?.reason.contains("changed four, two in it") == true)
    #expect(try names("d") == ["four", "one", "two"])
    #expect(try text("d/one") == "1" && text("d/two") == "theirs")
    let kept = URL(filePath: try #require(error?.keptCopy))
    #expect(try String(contentsOf: kept.appending(path: "one"), encoding: .utf8) == "mine")
    #expect(try names() == ["d", kept.lastPathComponent], "\(directory.listing)")
  }

  @Test("A directory that its accessor removes is kept when others changed something in it")
  func removalConflict() throws {
    try makeDirectory(["one": "1"])
    let error = #expect(throws: WormholeError.self) {
      try coordinator.coordinate(writingItemAt: url("d")) { copy in
        try FileManager.default.removeItem(at: copy)
        try Data("theirs".utf8).write(to: url("d/one"))
      }
    }
    #expect(error?.code == .conflict && error?.keptCopy == nil)
    #expect(try text("d/one") == "theirs")
    #expect(try names() == ["d"], "\(directory.listing)")
  }

  @Test("A directory that its accessor moves away is kept when others changed something in it")
  func movingConflict() throws {
    try makeDirectory(["one": "1"])
    let error = #expect(throws: WormholeError.self) {
      try coordinator.coordinate(writingItemAt: url("d")) { copy in
        try FileManager.default.moveItem(at: copy, to: url("moved"))
        coordinator.item(at: copy, didMoveTo: url("moved"))
        try Data("theirs".utf8).write(to: url("d/one"))
      }
    }
    #expect(error?.code == .conflict && error?.keptCopy == nil)
    #expect(try text("d/one") == "theirs" && text("moved/one") == "1")
    #expect(try names() == ["d", "moved"], "\(directory.listing)")
  }

  @Test("A directory and an item in it, in one access, are changed in one copy")
  func directoryWithItem() throws {
    try makeDirectory(["one": "1", "two": "2"])
    try coordinator.coordinate(writingItemAt: url("d"), writingItemAt: url("d/one")) { copy, item in
      #expect(item.path == copy.path + "/one")
      try Data("new".utf8).write(to: item)
      try Data("3".utf8).write(to: copy.appending(path: "three"))
      let other = #expect(throws: WormholeError.self) {
        try FileCoordinator().coordinate(writingItemAt: url("d/one"), until: .now) { _ in }
      }
      #expect(other?.code == .timedOut)
    }
    #expect(try names("d") == ["one", "three", "two"])
    #expect(try text("d/one") == "new")
    #expect(try names() == ["d"], "\(directory.listing)")
  }

  @Test(
    "An item in a directory that the same access replaces or deletes is gone with it",
    arguments: [WritingOptions.forReplacing, .forDeleting])
  func itemOfReplacedDirectory(options: WritingOptions) throws {
    try makeDirectory(["one": "1", "two": "2"])
    try coordinator.coordinate(
      writingItemAt: url("d"), options: options, writingItemAt: url("d/one"), options: []
    ) { copy, item in
      try Data("new".utf8).write(to: item)
      if options == .forDeleting {
        try FileManager.default.removeItem(at: copy)
      } else {
        try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: false)
        try Data("3".utf8).write(to: copy.appending(path: "three"))
      }
    }
    #expect(try names() == (options == .forDeleting ? [] : ["d"]), "\(directory.listing)")
    if options == .forReplacing { #expect(try names("d") == ["three"]) }
  }

  @Test("A mover gets the real place of its item, and reports the new one")
  func moving() throws {
    try Data("old".utf8).write(to: url("a.txt"))
    try coordinator.coordinate(writingItemAt: url("a.txt"), options: .forMoving) { place in
      #expect(place.path == url("a.txt").path)
      try FileManager.default.moveItem(at: place, to: url("b.txt"))
      coordinator.item(at: place, didMoveTo: url("b.txt"))
    }
    #expect(try names() == ["b.txt"], "\(directory.listing)")
  }

  /// It used to be in a private copy, and to be removed with that.
  @Test("A moved item is kept when its accessor throws after the move")
  func movedAndFailed() throws {
    struct Failure: Error {}
    try Data("old".utf8).write(to: url("a.txt"))
    #expect(throws: Failure.self) {
      try coordinator.coordinate(
        writingItemAt: url("a.txt"), options: .forMoving, writingItemAt: url("b.txt"),
        options: .forReplacing
      ) { old, new in
        #expect(new.path == url("b.txt").path)
        try FileManager.default.moveItem(at: old, to: new)
        coordinator.item(at: old, didMoveTo: new)
        throw Failure()
      }
    }
    #expect(try names() == ["b.txt"], "\(directory.listing)")
    #expect(try text("b.txt") == "old")
  }

  @Test("A snapshot stays as it was and is gone afterwards")
  func snapshot() throws {
    try Data("old".utf8).write(to: url("a.txt"))
    try coordinator.coordinate(readingItemAt: url("a.txt"), options: .forUploading) { copy in
      try FileCoordinator().coordinate(writingItemAt: url("a.txt")) {
        try Data("new".utf8).write(to: $0)
      }
      #expect(try String(contentsOf: copy, encoding: .utf8) == "old")
    }
    #expect(try text("a.txt") == "new")
    #expect(try names() == ["a.txt"], "\(directory.listing)")
  }

  #if DEBUG
    @Test("A snapshot of an item that a writer removes after it was passed by is none")
    func snapshotOfRemoved() throws {
      let item = url("a.txt")
      try Data("old".utf8).write(to: item)
      // The reader has seen the item when it makes the place for its copy.
      let plan = Faults.Plan { call, _ in
        if call == .mkdirat, FileManager.default.fileExists(atPath: item.path) {
          #expect(throws: Never.self) { try FileManager.default.removeItem(at: item) }
        }
        return .proceed
      }
      let isThere = try Faults.$plan.withValue(plan) {
        try coordinator.coordinate(readingItemAt: item, options: .forUploading) {
          FileManager.default.fileExists(atPath: $0.path)
        }
      }
      #expect(!isThere)
      #expect(try names() == [], "\(directory.listing)")
    }
  #endif

  @Test("A reader finds the item in its place, and may find none")
  func reading() throws {
    #expect(try coordinator.coordinate(readingItemAt: url("none")) { $0.path } == url("none").path)
    try Data("old".utf8).write(to: url("a.txt"))
    try FileManager.default.createSymbolicLink(at: url("link"), withDestinationURL: url("a.txt"))
    let given = try coordinator.coordinate(readingItemAt: url("link")) { $0.lastPathComponent }
    #expect(given == "link")
    let real = try coordinator.coordinate(
      readingItemAt: url("link"), options: .resolvesSymbolicLink
    ) { $0.lastPathComponent }
    #expect(real == "a.txt")
    #expect(try names() == ["a.txt", "link"], "\(directory.listing)")
  }

  @Test("Read and write, of one item and of two, in one access")
  func pairs() throws {
    try Data("1".utf8).write(to: url("a"))
    try coordinator.coordinate(readingItemAt: url("a"), writingItemAt: url("a")) { old, new in
      try Data((try String(contentsOf: old, encoding: .utf8) + "2").utf8).write(to: new)
      // The writer got a copy, and the reader the item.
      #expect(old.path == url("a").path)
      #expect(try text("a") == "1")
    }
    #expect(try text("a") == "12")
    try coordinator.coordinate(writingItemAt: url("b"), writingItemAt: url("a")) { b, a in
      try Data("b".utf8).write(to: b)
      try Data("a".utf8).write(to: a)
    }
    #expect(try text("a") == "a")
    #expect(try text("b") == "b")
    #expect(try names() == ["a", "b"], "\(directory.listing)")
  }

  @Test("Tasks and intents")
  func tasks() async throws {
    let coordinator = coordinator
    let intents = ["a", "b"].map { FileAccessIntent.writingIntent(with: url($0)) }
    try await coordinator.coordinate(with: intents) {
      for intent in intents {
        await Task.yield()
        try Data(intent.url.lastPathComponent.utf8).write(to: intent.url)
      }
    }
    #expect(try text("a") + text("b") == "ab")
    let all = try await coordinator.coordinate(readingItemAt: url("a")) { url in
      await Task.yield()
      return try String(contentsOf: url, encoding: .utf8)
    }
    #expect(all == "a")
    #expect(try names() == ["a", "b"], "\(directory.listing)")
  }

  @Test("A URL that is not a file's is refused, and no file of that path is touched")
  func web() throws {
    let web = try #require(URL(string: "http://example.com\(directory.path)/a.txt"))
    for write in [false, true] {
      let error = #expect(throws: WormholeError.self) {
        if write {
          try coordinator.coordinate(writingItemAt: web) { _ in Issue.record("has access") }
        } else {
          try coordinator.coordinate(readingItemAt: web) { _ in Issue.record("has access") }
        }
      }
      #expect(error?.code == .notAnItem)
      #expect(error?.reason.contains("http") == true)
    }
    #expect(try names() == [], "\(directory.listing)")
  }

  @Test("An accessor that coordinates its own item gets an error that it waits for itself")
  func waitsForItself() throws {
    try coordinator.coordinate(writingItemAt: url("a.txt")) { _ in
      // A child that another test is starting shares the locks for a moment: the item is then in use
      // by a process without a name.
      try eventually("the error names this process") {
        let error = #expect(throws: WormholeError.self) {
          try FileCoordinator().coordinate(writingItemAt: url("a.txt"), until: .now) { _ in }
        }
        #expect(error?.code == .timedOut)
        return error?.remedy?.contains("this process") == true
      }
    }
  }
}
