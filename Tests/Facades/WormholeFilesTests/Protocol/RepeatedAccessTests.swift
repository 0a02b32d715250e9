import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// What a process remembers of the directories above an item that it accesses again and again, and what
/// ends that.
@Suite("An item that is accessed again and again", .blocking)
struct RepeatedAccessTests {
  let scene: ProtocolScene
  let item: ItemPath

  init() throws {
    scene = try ProtocolScene()
    try scene.makeDirectory("d")
    try scene.makeDirectory("d/e")
    try scene.makeDirectory("other")
    try scene.write("old", "d/e/a")
    item = try scene.location("d/e/a")
  }

  /// Returns when the directories above are remembered: other tests make directories above, look at other
  /// items, and use up the user's event queues.
  private func remember() throws {
    try eventually("it is remembered") {
      (0..<50).contains { _ in DirectoriesAbove.isRemembered(item) }
    }
  }

  // this process               another owner
  // has read the file
  //                            has a directory above, with its contents
  // wants the file: gives way
  @Test("An access that keeps the contents of a directory above is seen", arguments: ["d", "d/e"])
  func keptAbove(_ directory: String) throws {
    let url = scene.url("d/e/a")
    try FileCoordinator().coordinate(readingItemAt: url) { _ in }
    try remember()
    let access = try scene.acquisition(directory, .replacing).run()
    defer { access.end() }
    #expect(throws: WormholeError.self) {
      try FileCoordinator().coordinate(readingItemAt: url, until: .now) { _ in }
    }
    try remember()
    #expect(throws: WormholeError.self) {
      try FileCoordinator().coordinate(writingItemAt: url, until: .now) { _ in }
    }
  }

  // this process               another owner
  // reads the file, remembered
  //                            keeps the contents: waits for the reader
  @Test("A reader that has not looked is seen by the owner of a directory above")
  func readerIsSeen() throws {
    try remember()
    var found: ItemLock?
    try eventually("it is read without a look") {
      try remember()
      found = try ItemLock.undisturbed(item)?.lock
      return found != nil
    }
    let lock = try #require(found)
    let access = try scene.acquisition("d", .replacing, until: .now + .seconds(60))
    #expect(try scene.isWaiting(access))
    withExtendedLifetime(lock) {}
    access.giveUp()
  }

  #if DEBUG
    // A test acts between two calls, and what it does may look at directories, too.
    @Test("The queue of what is forgotten is closed without the lock of all looks")
    func closing() throws {
      let item = item
      let isClosed = Atomic(false)
      let plan = Faults.Plan { call, _ in
        if call == .close {
          // Takes the lock.
          _ = DirectoriesAbove.known(item)
          isClosed.store(true, ordering: .relaxed)
        }
        return .proceed
      }
      // Another test may forget it first.
      try eventually("a look closes the queue") {
        try remember()
        try scene.makeDirectory("d/.coordination-e")
        try FileManager.default.removeItem(at: scene.url("d/.coordination-e"))
        Faults.$plan.withValue(plan) { _ = DirectoriesAbove.watched(item) }
        return isClosed.load(ordering: .relaxed)
      }
    }
  #endif

  enum Event: CaseIterable {
    case site, container, movedAway, replaced
  }

  @Test("Nothing is remembered after an event above", arguments: Event.allCases)
  func events(_ event: Event) throws {
    try remember()
    switch event {
    case .site: try scene.makeDirectory("d/.coordination-e")
    case .container: try scene.write("", "d/container.plist")
    case .movedAway: try FileManager.default.moveItem(at: scene.url("d"), to: scene.url("x"))
    case .replaced:
      try rename(
        scene.directory.path + "/other", at: Directory.current, to: scene.directory.path + "/d",
        at: Directory.current, .exchange)
    }
    #expect(DirectoriesAbove.current(item) == nil)
  }

  @Test("A publication of the item itself is no event above")
  func ownWrites() throws {
    // Another test may make a directory above at any time.
    try eventually("it is still remembered") {
      try remember()
      try FileCoordinator().coordinate(writingItemAt: scene.url("d/e/a")) {
        try Data("new".utf8).write(to: $0)
      }
      return DirectoriesAbove.current(item) != nil
    }
  }

  @Test("A file that others have, or that is none, is left to an acquisition")
  func disturbed() throws {
    try remember()
    let access = try scene.acquisition("d/e/a", .content).run()
    #expect(try ItemLock.undisturbed(item) == nil)
    access.end()
    try remember()
    let exclusive = try FileDescriptor.open(item.text, .readOnly)
    #expect(try exclusive.tryLock(.exclusive))
    #expect(try ItemLock.undisturbed(item) == nil)
    try exclusive.unlock()
    try remember()
    try FileManager.default.removeItem(at: scene.url("d/e/a"))
    try scene.makeDirectory("d/e/a")
    #expect(try ItemLock.undisturbed(item) == nil)
  }
}
