import FoundationEssentials
import Glibc
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

/// A site that is kept between changes, and what ends that.
@Suite("The site of an item that is changed again and again", .blocking)
struct WarmSitesTests {
  let scene: ProtocolScene

  init() throws {
    scene = try ProtocolScene()
    try scene.makeDirectory("d")
    try scene.write("old", "d/a")
  }

  private func change(_ text: String = "new") throws {
    try FileCoordinator().coordinate(writingItemAt: scene.url("d/a"), until: soon) {
      try Data(text.utf8).write(to: $0)
    }
  }

  private var isKept: Bool {
    get throws { try exists(scene.directory.path + "/d/.coordination-a", at: Directory.current) }
  }

  private func terms(_ term: Duration) -> AccessTerms {
    AccessTerms(purpose: ClaimName.purpose(of: Nonce.next()), term: term, until: soon)
  }

  /// Changes the item until its site is kept; the machine may be slow, and other tests forget it.
  private func warm() throws {
    try eventually("the site is kept") {
      // Without the pauses of the wait, so that each comes soon after the last.
      for _ in 0..<12 {
        try change()
        if try isKept { return true }
      }
      return false
    }
  }

  @Test("is removed a moment after the last change")
  func removed() throws {
    try warm()
    try eventually("it is removed") { try !isKept }
    #expect(try scene.names("d") == ["a"], "\(scene.directory.listing)")
  }

  @Test("is not kept after a few changes")
  func notKept() throws {
    for _ in 0..<20 {
      KeptSites.shared.removeAll()
      for _ in 0..<5 { try change() }
      #expect(try !isKept, "\(scene.directory.listing)")
    }
  }

  // this process               another owner
  // keeps the site
  //                            claims the item
  // wants the item: waits
  @Test("A claim that another owner has made meanwhile is seen")
  func otherClaim() throws {
    try eventually("the site is kept until the other one comes") {
      try warm()
      let access = try scene.acquisition("d/a", .content, until: soon).run()
      defer { access.end() }
      #expect(throws: FileCoordinationError.self) {
        try FileCoordinator().coordinate(writingItemAt: scene.url("d/a"), until: .now) {
          try Data("lost".utf8).write(to: $0)
        }
      }
      #expect(try scene.text("d/a") == "new")
      // The other one has not removed the site before its own claim.
      return true
    }
    #expect(try scene.names("d") == ["a"], "\(scene.directory.listing)")
  }

  // this process               another owner
  // keeps the site, forks
  //                            claims the item
  // finds the lease changed
  @Test("leaves no lock to a forked child when another owner has been there")
  func inherited() throws {
    try eventually("the site is kept until the other one comes") {
      try warm()
      guard let site = KeptSites.shared.take(try scene.location("d/a")) else { return false }
      let held = scene.directory.path + "/d/.coordination-a/held"
      // As the child has it. Other tests close descriptors meanwhile, or have some of too long paths.
      let copies = try RaceScene.names("/proc/self/fd").compactMap { Int32($0) }.filter {
        try tolerating([.noSuchFile, .fileNameTooLong], linkTarget("/proc/self/fd/\($0)")) == held
      }.map { dup($0) }
      defer { for copy in copies { close(copy) } }
      let before = try fileStatus(held)
      let access = try scene.acquisition("d/a", .content, until: soon).run()
      defer { access.end() }
      // tmpfs need not show that a directory was removed, and then one made.
      #expect(try fileStatus(held).modifiedNanoseconds != before.modifiedNanoseconds)
      guard KeptSites.shared.keep(site) else {
        SiteRemoval().add(site)
        return false
      }
      #expect(copies.count == 1)
      #expect(throws: FileCoordinationError.self) {
        try FileCoordinator().coordinate(writingItemAt: scene.url("d/a"), until: .now) { _ in }
      }
      // A child that another test is starting may have it until it runs its program.
      try eventually("nobody has its lock") {
        try FileDescriptor.open(held, [.readOnly, .directory]).tryLock(.exclusive)
      }
      return true
    }
  }

  // this process               another owner
  // has its claim in a kept site
  //                            wants the item: waits
  // publishes, and leaves
  //                            has the item
  @Test("is given up when another owner waits for the item")
  func waitedFor() throws {
    try eventually("the claim is in a site that is kept") {
      try warm()
      guard let site = KeptSites.shared.take(try scene.location("d/a")) else { return false }
      guard KeptSites.shared.keep(site) else {
        // Another test has forgotten it.
        SiteRemoval().add(site)
        return false
      }
      let session = try AccessOpening(
        [.writing(scene.url("d/a"), [])], under: terms(.seconds(60)), for: FileCoordinator()
      ).run()
      try Data("new".utf8).write(to: session.urls[0])
      let other = try scene.acquisition("d/a", .content, until: soon)
      #expect(try scene.isWaiting(other))
      try AccessClosing(session).run()
      #expect(!KeptSites.shared.countChange(of: try scene.location("d/a")))
      try other.run().end()
      return true
    }
  }

  // this process               another owner
  // has its claim in a kept site
  //                            takes it over
  // publishes: overtaken
  @Test("A claim in it that was taken over publishes nothing")
  func overtaken() throws {
    try eventually("the claim is in a site that is kept") {
      try warm()
      let session = try AccessOpening(
        [.writing(scene.url("d/a"), [])], under: terms(.zero), for: FileCoordinator()
      ).run()
      try Data("late".utf8).write(to: session.urls[0])
      let access = try scene.acquisition("d/a", .content, until: soon).run()
      #expect(throws: FileCoordinationError.self) { try AccessClosing(session).run() }
      #expect(try scene.text("d/a") == "new")
      access.end()
      return true
    }
  }

  enum End: CaseIterable { case exits, isKilled }

  @Test("leaves nothing, however its process ends", arguments: End.allCases)
  func processEnds(_ end: End) throws {
    let races = try RaceScene()
    try races.put("old", "a")
    let process = try races.participant()
    try eventually("the site is kept") {
      for _ in 0..<12 {
        #expect(try process.ask("writing \(races.path("a")) put=new") == "done")
      }
      return try races.claims("a") == ["held"]
    }
    switch end {
    case .exits:
      try process.tell("exit")
      #expect(try process.wait() == .exited(0))
    case .isKilled:
      try process.send(.kill)
      #expect(try process.wait() == .killed(signal: 9))
      // As after a kill in the middle of an access, the next one removes what is left.
      try FileCoordinator().coordinate(writingItemAt: races.url("a"), until: soon) {
        try Data("next".utf8).write(to: $0)
      }
    }
    #expect(try races.names() == ["a"], "\(races.directory.listing)")
  }

  // Where sites are kept, the kernel gives each change a time of its own. So this fails only if the times of
  // the copy are not compared.
  @Test("publishes each change, however soon it follows and however alike it is")
  func alike() throws {
    try warm()
    for number in 100..<400 {
      try change("\(number)")
      guard try scene.text("d/a") == "\(number)" else {
        Issue.record("\(number) was taken for no change")
        return
      }
    }
  }

  @Test("may be removed by others")
  func removedByOthers() throws {
    for number in 0..<20 {
      try warm()
      if let site = try ItemSite.open(scene.location("d/a")) { SiteRemoval().add(site) }
      try change("\(number)")
      #expect(try scene.text("d/a") == "\(number)")
    }
    #expect(try scene.names("d") == ["a"], "\(scene.directory.listing)")
  }

  @Test("is not used in a directory that has another name")
  func moved() throws {
    for number in 0..<20 {
      try warm()
      try FileManager.default.moveItem(at: scene.url("d"), to: scene.url("e\(number)"))
      try scene.makeDirectory("d")
      try change("\(number)")
      #expect(try scene.text("d/a") == "\(number)")
      #expect(try scene.text("e\(number)/a") == "new")
      #expect(try scene.names("d") == ["a"], "\(scene.directory.listing)")
      #expect(try scene.names("e\(number)") == ["a"], "\(scene.directory.listing)")
    }
  }

  @Test("is removed when an accessor has left something in its place")
  func leftovers() throws {
    for _ in 0..<20 {
      try warm()
      try FileCoordinator().coordinate(writingItemAt: scene.url("d/a"), until: soon) {
        try Data("new".utf8).write(to: $0)
        try Data().write(to: $0.appendingPathExtension("left"))
      }
      #expect(try !isKept, "\(scene.directory.listing)")
    }
  }

  @Test("is removed with the site of each other item in a burst of changes of many")
  func many() throws {
    for round in 0..<20 {
      for number in 0..<12 {
        try FileCoordinator().coordinate(
          writingItemAt: scene.url("d/\(number)"), until: soon
        ) { try Data("\(round)".utf8).write(to: $0) }
      }
    }
    #expect(try scene.names("d").count == 13, "\(scene.directory.listing)")
  }

  @Test("is not kept beside sixteen others, even if many accesses end at once")
  func limit() throws {
    let sites = try (0..<20).map { try ItemSite.openOrMake(scene.location("d/\($0)")) }
    for site in sites { _ = KeptSites.shared.countChange(of: site.location) }
    var kept = 0
    for site in sites {
      if KeptSites.shared.keep(site) { kept += 1 } else { SiteRemoval().add(site) }
    }
    #expect(kept <= 16)
    #expect(try scene.names("d") == ["a"], "\(scene.directory.listing)")
  }

  #if DEBUG
    enum Other: CaseIterable {
      /// Waits for no claim.
      case change
      /// Takes the claim over, because its term is over at once.
      case takeover
    }

    // this process               another owner
    // adds a letter ──────────── before one of its calls: adds one, too
    @Test("loses no change, whenever another owner comes", arguments: Other.allCases)
    func interrupted(_ other: Other) throws {
      let scene = scene
      let every = TriedSteps.isThorough ? 1 : 12
      let seed = TestSeed.next("WARM_STEP_SEED")
      var generator = seed.generator
      var number = Int.random(in: 0..<every, using: &generator)
      while true {
        try warm()
        let before = try scene.text("d/a")
        let isAdded = Mutex(false)
        var isOurs = false
        let hasMore = scene.run(interruptedAt: number, isWarm: true) {
          do {
            try Self.add("o", in: scene, until: .now + (other == .change ? .zero : .seconds(3)))
            isAdded.withLock { $0 = true }
          } catch {
            // This process has it.
            return
          }
        } _: {
          do {
            try Self.add("x", in: scene, until: soon, term: other == .change ? nil : .zero)
            isOurs = true
          } catch {
            // Its accessor finds its copy gone, or it publishes nothing.
            #expect(other == .takeover, "\(error)")
          }
        }
        let letters = (isOurs ? 1 : 0) + (isAdded.withLock(\.self) ? 1 : 0)
        let after = try scene.text("d/a")
        // An access that waited in vain until its deadline leaves its copy beside the item.
        let copies = try scene.names("d").filter { $0.hasPrefix("a.conflict-") }
        #expect(
          after.count == before.count + letters && letters + copies.count > 0,
          "\(other) before call \(number): \(before), \(after)")
        for copy in copies { try FileManager.default.removeItem(at: scene.url("d/" + copy)) }
        #expect(try scene.names("d") == ["a"], "\(number) \(scene.directory.listing)")
        if !hasMore { break }
        number += every
      }
      #expect(number > 30, "the site was kept")
    }

    private static func add(
      _ letter: String, in scene: ProtocolScene, until deadline: ContinuousClock.Instant,
      term: Duration? = nil
    ) throws {
      let terms = AccessTerms(
        purpose: ClaimName.purpose(of: Nonce.next()), term: term ?? .seconds(60), until: deadline)
      let session = try AccessOpening(
        [.writing(scene.url("d/a"), [])], under: terms, for: FileCoordinator()
      ).run()
      let copy = session.urls[0]
      try Data((String(contentsOf: copy, encoding: .utf8) + letter).utf8).write(to: copy)
      try AccessClosing(session).run()
    }
  #endif
}
