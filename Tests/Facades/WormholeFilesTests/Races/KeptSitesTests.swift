import FoundationEssentials
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// A site that a process keeps between two changes (`WarmSites`), and the other processes.
@Suite("A site that another process keeps", .blocking)
struct KeptSitesTests {
  let scene: RaceScene

  init() throws {
    scene = try RaceScene()
    try scene.put("old", "a")
  }

  /// Changes the item in this process until its site is kept, and takes it out of the table, so that it
  /// stays kept.
  private func keep() throws -> ItemSite {
    let location = try ItemPath.find(scene.path("a"), followingLink: false).place
    var site: ItemSite?
    try eventually("the site is kept") {
      try FileCoordinator().coordinate(writingItemAt: scene.url("a"), until: soon) {
        try ItemText.write("kept", to: $0.path)
      }
      site = WarmSites.shared.take(location)
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
    SiteRemoval().add(site)
    try scene.expectOnly(["a"])
  }
}
