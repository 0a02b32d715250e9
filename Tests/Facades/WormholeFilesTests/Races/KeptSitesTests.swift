import FoundationEssentials
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// A site that a process keeps between two changes (`KeptSites`), and the other processes.
@Suite("A site that another process keeps", .blocking)
struct KeptSitesTests {
  let scene: RaceScene

  init() throws {
    scene = try RaceScene()
    try scene.put("old", "a")
  }

  private func isKept(_ name: String = "a") throws -> Bool {
    try scene.entries(name) == ["spare"]
  }

  /// Changes an item so often in a row that its site is kept, if the machine is not too slow.
  private func changeOften(_ name: String, by process: Participant, put text: String) throws {
    for _ in 0..<12 {
      #expect(try process.ask("writing \(scene.path(name)) put=\(text)") == "done")
    }
  }

  /// Returns a process that is stopped while it keeps the site.
  private func stoppedKeeper() throws -> Participant {
    let keeper = try scene.participant()
    try eventually("it is stopped while it keeps the site") {
      try changeOften("a", by: keeper, put: "kept")
      guard try isKept() else { return false }
      try keeper.send(.stop)
      try keeper.waitUntilStopped()
      if try isKept() { return true }
      try keeper.send(.continue)
      return false
    }
    return keeper
  }

  // keeper                     other
  // keeps the site, stopped
  //                            changes the item, and leaves
  // continues, changes it
  @Test("and is stopped is removed by the next one that leaves")
  func stopped() throws {
    let keeper = try stoppedKeeper()
    let other = try scene.participant()
    #expect(try other.ask("writing \(scene.path("a")) put=other") == "done")
    #expect(try scene.names() == ["a"], "\(scene.directory.listing)")
    try keeper.send(.continue)
    #expect(try keeper.ask("writing \(scene.path("a")) append=+") == "done")
    #expect(try scene.text("a") == "other+")
    try scene.expectOnly(["a"])
  }

  /// Changes the item in this process until its site is kept, and takes it out of the table, so that it
  /// stays kept.
  private func keep() throws -> ItemSite {
    let location = try ItemPath.find(scene.path("a"), followingLink: false).place
    var site: ItemSite?
    try eventually("the site is kept") {
      for _ in 0..<12 {
        try FileCoordinator().coordinate(writingItemAt: scene.url("a"), until: soon) {
          try ItemText.write("kept", to: $0.path)
        }
      }
      site = KeptSites.shared.take(location)
      return site != nil
    }
    return try #require(site)
  }

  // Otherwise others would wait for the end of its term when a third one is stopped with the lease.
  @Test("declares no holder of its lease")
  func undeclared() throws {
    let site = try keep()
    let left = try RaceScene.names(scene.path(".coordination-a/held"))
    #expect(left.count == 1 && left.allSatisfy { LeaseDeclaration(FileName($0)) == nil }, "\(left)")
    site.removeKept()
    try scene.expectOnly(["a"])
  }

  /// Returns a process that is stopped while it keeps the site, and whose forked child executes the
  /// commands.
  private func forkedKeeper() throws -> Participant {
    let keeper = try scene.participant()
    try eventually("it is stopped while it keeps the site") {
      try changeOften("a", by: keeper, put: "kept")
      guard try isKept() else { return false }
      #expect(try keeper.ask("fork") == "done")
      try keeper.waitUntilStopped()
      if try isKept() { return true }
      try endChild(of: keeper)
      return false
    }
    return keeper
  }

  private func endChild(of keeper: Participant) throws {
    try keeper.tell("exit")
    try keeper.send(.continue)
    #expect(try keeper.answer() == "0")
  }

  private func keep(_ name: String, by process: Participant) throws {
    try eventually("the site of \(name) is kept") {
      try changeOften(name, by: process, put: "child")
      return try isKept(name)
    }
  }

  // keeper                     its forked child
  // keeps the site, stopped
  //                            exits, or before that keeps the site of another item
  @Test("is not removed by a forked child when that exits", arguments: [false, true])
  func forkedChildExits(keepsOther: Bool) throws {
    let keeper = try forkedKeeper()
    if keepsOther {
      try scene.put("old", "b")
      try keep("b", by: keeper)
    }
    try keeper.tell("exit")
    try eventually("the child has ended") { try Self.hasEndedChild(keeper.processID) }
    #expect(try isKept(), "\(scene.directory.listing)")
    try keeper.send(.continue)
    #expect(try keeper.answer() == "0")
    try scene.expectOnly(keepsOther ? ["a", "b"] : ["a"])
  }

  // keeper                     its forked child
  // keeps the site, stopped
  //                            has the item, keeps the site, and removes it
  // continues, has the item
  @Test("is not used by a forked child, which keeps one of its own")
  func forkedChildWrites() throws {
    let keeper = try forkedKeeper()
    let spare = try fileStatus(scene.path(".coordination-a/held/spare"))
    #expect(try keeper.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    let entry = try #require(try scene.entries("a").first { $0 != "spare" })
    let status = try fileStatus(scene.path(".coordination-a/held/\(entry)"))
    #expect(!status.isSameFile(as: spare))
    #expect(try keeper.ask("leave") == "done")
    try keep("a", by: keeper)
    try eventually("it is removed") { try scene.entries("a") == [] }
    try endChild(of: keeper)
    #expect(try keeper.ask("writing \(scene.path("a")) append=+") == "done")
    #expect(try scene.text("a") == "child+")
    try scene.expectOnly(["a"])
  }

  private static func hasEndedChild(_ process: Int32) throws -> Bool {
    let path = "/proc/\(process)/task/\(process)/children"
    let children = try String(contentsOf: URL(filePath: path), encoding: .utf8)
    return children.split(separator: " ").allSatisfy {
      ProcessStatus.of(Int32($0) ?? 0)?.isDead ?? true
    }
  }
}
