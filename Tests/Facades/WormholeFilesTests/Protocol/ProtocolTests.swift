import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

/// The rules whose absence Tests/Models/claims.pml and contents.pml detect, in the code.
@Suite("The protocol of claims", .blocking)
struct ProtocolTests {
  let scene: ProtocolScene

  init() throws {
    scene = try ProtocolScene()
  }

  private static let most = 400

  /// It used to be lost: an access that looked for the place of the directory before it looked for
  /// claims of its contents published into the old directory.
  @Test("A publication is in the directory, whenever that is replaced meanwhile")
  func replacedAtEachCall() throws {
    let scene = scene
    for number in 0..<Self.most {
      try scene.makeDirectory("d")
      try scene.write("old", "d/x")
      let wasSeen = Mutex(false)
      let hasMore = try scene.run(interruptedAt: number) {
        do {
          try FileCoordinator().coordinate(
            writingItemAt: scene.url("d"), options: .forReplacing, until: .now
          ) { copy in
            if try scene.text("d/x") == "new" { wasSeen.withLock { $0 = true } }
            try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: false)
            try Data("replaced".utf8).write(to: copy.appending(path: "x"))
          }
        } catch {
          // Another access is inside, so the directory is not replaced.
          return
        }
      } _: {
        try FileCoordinator().coordinate(writingItemAt: scene.url("d/x")) {
          try Data("new".utf8).write(to: $0)
        }
      }
      let isSafe = try wasSeen.withLock { $0 } || scene.text("d/x") == "new"
      #expect(isSafe, "replaced at call \(number)")
      #expect(try scene.names("d") == ["x"], "replaced at call \(number)")
      #expect(
        try scene.names() == ["d"], "replaced at call \(number): \(scene.directory.listing)")
      try FileManager.default.removeItem(at: scene.url("d"))
      if !hasMore { return }
    }
    Issue.record("more than \(Self.most) calls")
  }

  /// It used to look again and again without a pause, because a missing item has nothing to watch.
  @Test("The publication of a new item waits for those that share its place")
  func publishedWhileShared() throws {
    let (file, coordinator) = (scene.url("x"), FileCoordinator())
    let terms = AccessTerms(
      purpose: ClaimName.purpose(of: "other"), term: .seconds(60), until: .now + .seconds(60))
    var closing: AccessClosing?
    try FileCoordinator().hold(itemAt: file, for: .sharing, until: nil, term: nil) { _, _ in
      let session = try AccessOpening([.writing(file, [])], under: terms, for: coordinator).run()
      try Data("new".utf8).write(to: session.urls[0])
      let work = AccessClosing(session)
      closing = work
      var (steps, unpaused) = (0, 0)
      // A process that is being started has a copy of each lock for a moment, so a lease may be busy.
      while steps < 100, case .spin(let pause) = try work.step() {
        steps += 1
        if pause == .zero { unpaused += 1 } else { pauseThread(pause) }
      }
      #expect(steps < 100 && unpaused < 10, "it never waits")
    }
    try closing?.run()
    #expect(try scene.text("x") == "new")
    #expect(try scene.names() == ["x"], "\(scene.directory.listing)")
  }

  /// Before Linux 6.13 a time can tell two writes apart only if the clock has ticked in between, so a
  /// change of as many bytes was not published when it followed another one at once.
  @Test("A private copy never has the time that a write at this moment would give it")
  func copiedWithinOneTick() throws {
    try eventually("it is copied within a tick") {
      try scene.write("1", "x")
      let item = try fileStatus(scene.url("x").path)
      var copied = item
      try FileCoordinator().coordinate(writingItemAt: scene.url("x")) {
        copied = try fileStatus($0.path)
      }
      guard item.isJustWritten else { return false }
      #expect(
        item.modifiedNanoseconds == 0 || copied.modifiedNanoseconds < item.modifiedNanoseconds)
      #expect(try fileStatus(scene.url("x").path).isSameFile(as: item), "it is published")
      return true
    }
  }

  /// The taker's lease may be older than the end of the term; the late owner used to see only that.
  @Test("An owner whose term was over learns that from the taker, however old the taker's lease is")
  func takenAtItsTerm() throws {
    try scene.write("old", "x")
    let site = try ItemSite.openOrMake(scene.location("x"))
    let term = Duration.milliseconds(100)
    let claim = try site.leaseRequest(until: .now + .seconds(20)).run().using { lease in
      try Claim.make(
        ClaimName(
          kind: .copying, coversContents: false,
          declaration: LeaseDeclaration(term: term), purpose: "other"),
        at: site, under: lease)
    }
    try site.leaseRequest(until: .now + .seconds(20)).run().using { lease in
      try eventually("the term is over") { claim.name.isPastItsTerm }
      #expect(try site.takeOver(claim.name, isAlive: true, under: lease))
    }
    let error = claim.overtaken()
    #expect("\(error)".contains("its term of 0.1 s was over"), "\(error)")
  }

  /// It used to end only by a deadline: the inner access gave way with the item that it was waiting
  /// for, but kept the others that the directory's owner waited for.
  @Test("An access to two items in a directory that another claims gives way with both")
  func givesWayWithAll() throws {
    try scene.makeDirectory("d")
    let other = try scene.acquisition("d/b", .content).run()
    let requests = ["d/a", "d/b"].map { AccessRequest.writing(scene.url($0), []) }
    let terms = AccessTerms(
      purpose: ClaimName.purpose(of: "pair"), term: .seconds(60), until: .now + .seconds(60))
    let pair = AccessOpening(requests, under: terms, for: FileCoordinator())
    guard case .wait = try scene.step(pair) else {
      Issue.record("the second item is in use")
      return
    }
    let owner = try scene.acquisition("d", .deleting, until: terms.deadline)
    #expect(try scene.isWaiting(owner))
    other.end()
    // Neither of them needs more than steps.
    for _ in 0..<10 {
      _ = try scene.step(pair)
      guard case .done(let access) = try scene.step(owner) else { continue }
      access.end()
      try pair.run().abandon()
      #expect(try scene.names("d") == [])
      return
    }
    Issue.record("each of them waits for the other")
  }

  /// It used to get the place where no item was any more, when the directory was moved between the look
  /// for the item and the looks for other accesses.
  @Test("A reader gets the item's new place, whenever its directory is moved and the mover leaves")
  func movedAtEachCall() throws {
    let scene = scene
    for number in 0..<Self.most {
      try scene.makeDirectory("d")
      try scene.write("old", "d/x")
      let mover = try scene.acquisition("d", .moving).run()
      let reader = try scene.acquisition("d/x", .reading, until: .now + .seconds(60))
      while try !scene.isWaiting(reader) {}
      var access: ItemAccess?
      let hasMore = try scene.run(interruptedAt: number) {
        do {
          try FileManager.default.moveItem(at: scene.url("d"), to: scene.url("e"))
        } catch {
          Issue.record(error)
        }
        mover.end()
      } _: {
        if case .done(let granted) = try scene.step(reader) { access = granted }
      }
      mover.end()
      let granted = try access ?? reader.run()
      let isMoved = hasMore
      #expect(
        try granted.location == scene.location(isMoved ? "e/x" : "d/x"), "left at call \(number)")
      granted.end()
      try FileManager.default.removeItem(at: scene.url(isMoved ? "e" : "d"))
      #expect(try scene.names() == [], "left at call \(number): \(scene.directory.listing)")
      if !hasMore { return }
    }
    Issue.record("more than \(Self.most) calls")
  }

  /// It used to block in the step for up to a quarter of a second.
  @Test("A site whose lease another process has is removed in steps that do not block")
  func removalInSteps() throws {
    let access = try scene.acquisition("a", .content).run()
    let site = try #require(try ItemSite.open(try scene.location("a")))
    // A child that another test is just starting may keep the lock of the last lease for a moment.
    var lease: Lease? = try LeaseRequest(
      site: site.lease, term: .seconds(60), deadline: .now + .seconds(60)
    ).run()
    let removal = SiteRemoval()
    access.end(removal)
    guard case .spin = removal.step() else {
      Issue.record("the lease is held")
      return
    }
    withExtendedLifetime(lease) {}
    lease = nil
    while removal.step().block() == nil {}
    #expect(try scene.names() == [], "\(scene.directory.listing)")
  }

  /// It used to be granted: items from before giving way were not examined again.
  @Test("An access that claims contents again, after giving way, examines all of them again")
  func looksAgain() throws {
    try scene.makeDirectory("o")
    try scene.makeDirectory("o/d")
    let idle = (0..<6).map { "o/d/\($0)" }
    for name in idle { _ = try ItemSite.openOrMake(try scene.location(name)) }
    let inside = try scene.acquisition("o/d/y", .content).run()
    let far = ContinuousClock.now + .seconds(60)
    let owner = try scene.acquisition("o/d", .deleting, until: far)
    #expect(try scene.isWaiting(owner))
    var above: ItemAcquisition? = try scene.acquisition("o", .deleting, until: far)
    #expect(try above.map(scene.isWaiting) == true)
    #expect(try scene.isWaiting(owner))
    above = nil
    let began = try idle.map { try scene.acquisition($0, .content).run() }
    inside.end()
    #expect(try scene.isWaiting(owner))
    for access in began { access.end() }
    guard case .done(let access) = try scene.step(owner) else {
      Issue.record("no claim is left")
      return
    }
    access.end()
    #expect(try scene.names("o/d") == [])
  }

  /// It used to continue without a lock if the lock was released in between.
  @Test("A reader has the item locked, whenever its owner leaves")
  func readerLocks() throws {
    try scene.write("old", "a")
    for number in 0..<Self.most {
      let owner = try scene.acquisition("a", .locking).run()
      let hasMore = try scene.run(interruptedAt: number) {
        owner.end()
      } _: {
        do {
          let reader = try scene.acquisition("a", .reading).run()
          let file = try FileDescriptor.open(scene.directory.path + "/a", .readOnly)
          #expect(try !file.tryLock(.exclusive), "left at call \(number)")
          reader.end()
        } catch let error as WormholeError where error.code == .timedOut {
          // It left too late.
          return
        }
      }
      owner.end()
      if !hasMore { return }
    }
    Issue.record("more than \(Self.most) calls")
  }

  // reader                     owner 1      owner 2
  //                            has it
  // finds it locked
  //                            leaves
  // finds nobody
  //                                         has it
  // finds it locked
  //                                         leaves
  // finds nobody
  @Test("A reader has the item locked also if one owner after the other leaves between its looks")
  func readerLocksAfterTwo() throws {
    try scene.write("old", "a")
    let scene = scene
    for owners in 2...4 {
      let owner = Mutex<ItemAccess?>(try scene.acquisition("a", .locking).run())
      let state = Mutex((tries: 0, isDue: false))
      let plan = Faults.Plan { call, _ in
        let (tries, isDue) = state.withLock { state in
          defer { state = (state.tries + (call == .flock ? 1 : 0), call == .flock) }
          return (state.tries, state.isDue)
        }
        Faults.$plan.withValue(nil) {
          if isDue { owner.withLock { $0.take() }?.end() }
          guard call == .flock, (1..<owners).contains(tries) else { return }
          do {
            let next = try scene.acquisition("a", .locking).run()
            owner.withLock { $0 = next }
          } catch {
            Issue.record(error)
          }
        }
        return .proceed
      }
      let reader = try Faults.$plan.withValue(plan) {
        try scene.acquisition("a", .reading, until: soon).run()
      }
      let file = try FileDescriptor.open(scene.directory.path + "/a", .readOnly)
      #expect(try !file.tryLock(.exclusive), "\(owners) owners")
      #expect(state.withLock(\.tries) > owners)
      reader.end()
    }
  }

  @Test("A reader of a file that another program has locked goes on after two looks")
  func lockedByProgram() throws {
    try scene.write("old", "a")
    let file = try FileDescriptor.open(scene.directory.path + "/a", .readOnly)
    #expect(try file.tryLock(.exclusive))
    let reader = try scene.acquisition("a", .reading, until: soon).run()
    reader.end()
    #expect(try scene.names() == ["a"])
  }

  /// It used to be left behind: the owner found the lease in use, and the holder of the lease gave
  /// up.
  @Test("Nothing is left if one gives up while the other leaves")
  func givesUp() throws {
    try scene.write("old", "a")
    for number in 0..<Self.most {
      let owner = try scene.acquisition("a", .content).run()
      let hasMore = try scene.run(interruptedAt: number) {
        owner.end()
      } _: {
        do {
          try scene.acquisition("a", .content).run().end()
        } catch let error as WormholeError where error.code == .timedOut {
          // It blocks the other all the same, for a moment.
          return
        }
      }
      owner.end()
      #expect(try scene.names() == ["a"], "left at call \(number): \(scene.directory.listing)")
      if !hasMore { return }
    }
    Issue.record("more than \(Self.most) calls")
  }

  @Test("Nothing is left if one arrives and gives up while the other leaves")
  func comesMeanwhile() throws {
    try scene.write("old", "a")
    let scene = scene
    for number in 0..<Self.most {
      let owner = try scene.acquisition("a", .content).run()
      let hasMore = scene.run(interruptedAt: number) {
        do {
          try scene.acquisition("a", .content).run().end()
        } catch {
          // It arrived too early.
          return
        }
      } _: {
        owner.end()
      }
      #expect(try scene.names() == ["a"], "came at call \(number): \(scene.directory.listing)")
      if !hasMore { return }
    }
    Issue.record("more than \(Self.most) calls")
  }

  #if DEBUG
    /// It used to be left behind: a child that was being started still had the lease locked.
    @Test("Nothing is left if the lease stays locked for a moment without a holder")
    func lockedByNobody() throws {
      try scene.write("old", "a")
      let owner = try scene.acquisition("a", .content).run()
      let tries = Mutex(0)
      // More than the number of attempts before another look.
      let plan = Faults.Plan { call, _ in
        guard call == .flock else { return .proceed }
        return tries.withLock { tries in
          tries += 1
          return tries <= 40 ? .fail(.wouldBlock) : .proceed
        }
      }
      Faults.$plan.withValue(plan) { owner.end() }
      #expect(tries.withLock { $0 } > 40)
      #expect(try scene.names() == ["a"], "\(scene.directory.listing)")
    }
  #endif

  /// It used to stay until the access after the next one.
  @Test("An access that is dropped while it waits leaves nothing")
  func dropped() throws {
    try scene.makeDirectory("d")
    let inside = try scene.acquisition("d/x", .content).run()
    var owner: ItemAcquisition? = try scene.acquisition(
      "d", .deleting, until: .now + .seconds(60))
    #expect(try owner.map(scene.isWaiting) == true)
    owner = nil
    #expect(try scene.names() == ["d"], "\(scene.directory.listing)")
    inside.end()
    #expect(try scene.names("d") == [])
  }
}

extension Lease {
  /// Runs a closure while the lease is held.
  fileprivate func using<Result>(_ body: (Lease) throws -> Result) rethrows -> Result {
    try withExtendedLifetime(self) { try body(self) }
  }
}
