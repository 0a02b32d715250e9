#if DEBUG
  import Testing
  import Wormhole
  import WormholeSystem
  import WormholeTestSupport

  @testable import WormholeFiles

  @Suite("Many presenters", .blocking)
  struct PresentersManyTests {
    let scene: PresenterScene

    init() throws {
      scene = try PresenterScene()
      try scene.shell("for n in $(seq 40); do echo > file$n; done")
    }

    @Test("cost an access to another item one look at their directory")
    func unconcerned() throws {
      let other = try Participant(scene.directory.path)
      let site = PresenterSite(scene.container)
      var counts: [Int] = []
      for number in 1...40 {
        #expect(try other.ask("present \(scene.path("file\(number)"))") == "done")
        // It learns of the new one.
        _ = site.others { _, _ in false }
        counts.append(Faults.calls { _ = site.others { _, _ in false } })
      }
      #expect(counts[39] <= counts[0] + 2, "\(counts)")
      let one = scene.path("file7")
      #expect(site.others { path, _ in path.text == one }.map(\.path.text) == [one])
      try other.end()
      #expect(site.others { _, _ in true }.isEmpty)
    }
  }
#endif
