import FoundationEssentials
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

/// The contents and neighbours of a site: remains, foreign entries, names.
@Suite("Sites and names", .blocking)
struct SiteTests {
  let scene: ProtocolScene

  init() throws {
    scene = try ProtocolScene()
  }

  @Test("What a process put aside and did not remove, because it died, does not keep the site")
  func deadTaker() throws {
    let access = try scene.acquisition("a", .content).run()
    try scene.makeDirectory(".coordination-a/trash-1")
    try scene.write("", ".coordination-a/trash-1/a")
    try scene.write("", ".coordination-a/trash-2")
    access.end()
    #expect(try scene.names() == [], "\(scene.directory.listing)")
  }

  @Test("A site that was moved with its directory is removed in its new place")
  func movedSite() throws {
    try scene.makeDirectory("d")
    let site = try ItemSite.openOrMake(try scene.location("d/x"))
    try FileManager.default.moveItem(at: scene.url("d"), to: scene.url("e"))
    site.leave()
    #expect(try scene.names("e") == [], "\(scene.directory.listing)")
  }

  @Test("A site with a loose mode does not block the directory that it is in")
  func unsafeSite() throws {
    try scene.makeDirectory("d")
    try WormholeSystem.makeDirectory(scene.directory.path + "/d/.coordination-x", mode: 0o755)
    try FileCoordinator().coordinate(writingItemAt: scene.url("d"), options: .forDeleting) {
      try FileManager.default.removeItem(at: $0)
    }
    #expect(try scene.names() == [], "\(scene.directory.listing)")
  }

  /// It used to be followed into the site, where it is on its way out.
  @Test("An item that is being deleted has not moved")
  func deletedIsNotMoved() throws {
    try scene.makeDirectory("d")
    let place = try scene.location("d")
    let item = try #require(try place.openToFollow())
    try scene.makeDirectory(".coordination-d")
    try FileManager.default.moveItem(
      at: scene.url("d"), to: scene.url(".coordination-d/trash-1"))
    #expect(try place.newPlace(of: item) == nil)
    try FileManager.default.moveItem(
      at: scene.url(".coordination-d/trash-1"), to: scene.url("e"))
    #expect(try place.newPlace(of: item) == scene.location("e"))
  }

  /// These used to be one item.
  @Test("Names that only look the same are different items")
  func spellings() throws {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
    let base = scene.directory.path + "/"
    let (one, other) = (
      try ItemPath.find(base + composed, followingLink: false).place,
      try ItemPath.find(base + decomposed, followingLink: false).place
    )
    #expect(one != other)
    #expect(Set([one, other]).count == 2)
  }

  @Test("A name may begin with a combining mark")
  func combiningMark() throws {
    let name = "\u{301}x"
    let location = try scene.location(name)
    #expect(location.name.bytes == Array(name.utf8))
    #expect(location.ancestors.first == location.parent)
  }

  /// They used to be sorted as text: "a", "a.b", "a/x".
  @Test("Nothing is sorted between a directory and its contents")
  func order() {
    let paths = ["/a/x", "/a.b", "/a-b", "/a", "/a/x/y", "/a/x.y", "/b"]
    let ordered = paths.map { ItemPath($0) }.sorted { ItemPath.precedes($0, $1) }
    #expect(ordered.map(\.text) == ["/a", "/a/x", "/a/x/y", "/a/x.y", "/a-b", "/a.b", "/b"])
  }

  @Test("In a shared directory, a name may have the full length")
  func longNames() throws {
    try scene.makeDirectory("shared")
    try FileDescriptor.open(scene.directory.path + "/shared", [.readOnly, .directory])
      .setPermissions(0o2770)
    for length in [200, 230, 241, 242, 255] {
      let name = "shared/" + String(repeating: "n", count: length)
      try FileCoordinator().coordinate(writingItemAt: scene.url(name)) {
        try Data("new".utf8).write(to: $0)
      }
      #expect(try scene.text(name) == "new")
      try FileManager.default.removeItem(at: scene.url(name))
    }
    #expect(try scene.names("shared") == [], "\(scene.directory.listing)")
  }

  /// All of them used to be passed over as soon as one was stopped.
  @Test("A running reader is waited for beside a stopped one")
  func readersBesideStopped() throws {
    try scene.write("old", "a")
    let path = scene.directory.path + "/a"
    let stopped = try ChildProcess("flock", ["-s", "-F", path, "sleep", "60"])
    let location = try scene.location("a")
    try eventually("it has the item locked") {
      try LockTable.current().holders(of: fileStatus(path)).contains(stopped.processID)
    }
    try stopped.send(.stop)
    try eventually("it is stopped") { ProcessStatus.of(stopped.processID)?.isStopped == true }
    var reader: ItemAccess? = try scene.acquisition("a", .reading).run()
    #expect(reader != nil)
    var wait = ReadersWait()
    let now = ContinuousClock.now
    guard try wait.look(at: location, for: "other", now: now) != nil,
      try wait.look(at: location, for: "other", now: now + .seconds(1)) != nil
    else {
      Issue.record("passed over")
      return
    }
    reader?.end()
    reader = nil
    guard try wait.look(at: location, for: "other", now: now + .seconds(2)) == nil, wait.held == nil
    else {
      Issue.record("waits for a stopped reader")
      return
    }
    try stopped.send(.kill)
    _ = try stopped.wait(until: soon)
  }
}
