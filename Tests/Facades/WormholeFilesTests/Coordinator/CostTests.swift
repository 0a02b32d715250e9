#if DEBUG
  import FoundationEssentials
  import Testing
  import Wormhole
  import WormholeSystem
  import WormholeTestSupport
  import WormholeToolkit

  @testable import WormholeFiles

  /// The system calls of an access to a file that no other process uses, without those for presenters.
  @Suite("The cost of an access", .blocking)
  struct CostTests {
    let scene: ProtocolScene

    init() throws {
      // Other suites of this process do the same when they share a container among users.
      ForeignLinks.expect()
      scene = try ProtocolScene()
      try scene.write("old", "a")
      // What a process asks the kernel only once is asked here.
      try FileCoordinator().coordinate(writingItemAt: scene.url("a")) {
        try Data("first".utf8).write(to: $0)
      }
    }

    /// The directories above, whose contents may be kept; the root's cannot be.
    private var above: Int {
      get throws { try scene.location("a").ancestors.count - 1 }
    }

    private func calls(_ request: AccessRequest, _ accessor: (String) throws -> Void) throws -> Int
    {
      let coordinator = FileCoordinator()
      coordinator.setPrepared(
        [try PresenterDemand(path: scene.location("a"), kind: request.kind)],
        by: ObjectIdentifier(coordinator))
      let terms = AccessTerms(
        purpose: "cost", term: .seconds(60), until: .now + .seconds(60))
      let plan = Faults.Plan { _, _ in .proceed }
      try Faults.$plan.withValue(plan) {
        let session = try AccessOpening([request], under: terms, for: coordinator).run()
        try Faults.$plan.withValue(nil) { try accessor(session.urls[0].path) }
        try AccessClosing(session).run()
      }
      return plan.calls
    }

    /// Another test may have the directories of all items watched, and then these are remembered.
    private func isForgotten() throws -> Bool {
      let location = try scene.location("a")
      if DirectoriesAbove.known(location) == nil { return true }
      _ = DirectoriesAbove.watched(location)
      return false
    }

    @Test("Registering a presenter takes no more calls for those that are registered already")
    func registering() throws {
      // Otherwise they would register in a container of this user's.
      _ = try scene.directory.container()
      let presenters = (0..<30).map { _ in SavingPresenter(scene.url("a").path) }
      let costs = try presenters.map { presenter in
        let plan = Faults.Plan { _, _ in .proceed }
        try Faults.$plan.withValue(plan) { try FileCoordinator.addFilePresenter(presenter) }
        return plan.calls
      }
      for presenter in presenters { FileCoordinator.removeFilePresenter(presenter) }
      #expect(costs[29] < costs[1] + 20, "\(costs)")
    }

    @Test("Reading takes 10 calls, and one for each directory above")
    func reading() throws {
      try scene.expectLeast(10 + above) {
        try isForgotten() ? try calls(.reading(scene.url("a"), [])) { _ in } : nil
      }
    }

    @Test("Reading again takes 10 calls, however many directories are above")
    func readingAgain() throws {
      let location = try scene.location("a")
      try scene.expectLeast(10) {
        guard DirectoriesAbove.isRemembered(location) else { return nil }
        let plan = Faults.Plan { _, _ in .proceed }
        let isLocked = try Faults.$plan.withValue(plan) {
          try ItemLock.undisturbed(location) != nil
        }
        return isLocked ? plan.calls : nil
      }
    }

    private func callsOfChange() throws -> Int {
      KeptSites.shared.removeAll()
      return try callsOfNextChange()
    }

    private func callsOfNextChange() throws -> Int {
      try calls(.writing(scene.url("a"), [])) {
        try Data("new".utf8).write(to: URL(filePath: $0))
      }
    }

    @Test(
      "Changing a small file takes 43 calls, two of them against links, and one for each directory above"
    )
    func writing() throws {
      try scene.expectLeast(43 + above) { try isForgotten() ? try callsOfChange() : nil }
      #expect(try scene.text("a") == "new")
    }

    @Test("Changing it again takes one call for all directories above")
    func writingAgain() throws {
      let location = try scene.location("a")
      try scene.expectLeast(44) {
        DirectoriesAbove.isRemembered(location) ? try callsOfChange() : nil
      }
    }

    @Test("Changing it again and again makes and removes no directory")
    func writingAgainAndAgain() throws {
      let location = try scene.location("a")
      try scene.expectLeast(33) {
        DirectoriesAbove.isRemembered(location) ? try callsOfNextChange() : nil
      }
    }

    @Test("The publisher's attribute fits into an inode of ext4")
    func publisher() throws {
      try FileCoordinator().coordinate(writingItemAt: scene.url("a")) {
        try Data("new".utf8).write(to: $0)
      }
      let file = try FileDescriptor.open(scene.directory.path + "/a", .readOnly)
      // Beside a name of 18 bytes, where an inode has 256 bytes.
      #expect(try file.attribute(ItemPublisher.attribute).count <= 52)
      #expect(FileCoordinator.publisher(ofItemAt: scene.url("a"))?.processID == Program.processID)
    }
  }
#endif
