import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

/// The rules whose absence Tests/Models/files.pml and contents.pml detect, in the code.
@Suite("The protocol of coordinated files", .blocking)
struct ProtocolTests {
  let scene: ProtocolScene

  init() throws {
    scene = try ProtocolScene()
  }

  private static let most = 400

  /// It used to be lost: an access that looked for the place of the directory before it looked for
  /// those that keep its contents published into the old directory.
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

  /// A missing item has nothing to lock, so a program that shares it has it alone.
  @Test("The publication of a new item waits for a program that shares its place")
  func publishedWhileShared() throws {
    let file = scene.url("x")
    let writer = try scene.acquisition("x", .content, until: soon)
    let isWaiting = try FileCoordinator().hold(
      itemAt: file, for: .sharing, until: nil, term: nil
    ) { _, _ in try scene.isWaiting(writer) }
    #expect(isWaiting)
    try writer.run().end()
    #expect(try scene.names() == [], "\(scene.directory.listing)")
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

  @Test("An owner whose term was over learns that, and who took it over")
  func takenAtItsTerm() throws {
    try scene.write("old", "x")
    let terms = AccessTerms(purpose: "late", term: .milliseconds(100), until: soon)
    let late = try ItemAcquisition(try scene.location("x"), .content, under: terms).run()
    let taker = try scene.acquisition("x", .content, until: soon).run()
    let error = try #require(try late.loss())
    #expect("\(error)".contains("its term of 0.1 s was over"), "\(error)")
    #expect(error.holder?.processID == Program.processID, "\(error)")
    taker.end()
    late.end()
    #expect(try scene.names() == ["x"], "\(scene.directory.listing)")
  }

  /// It used to end only by a deadline: the inner access gave way with the item that it was waiting
  /// for, but kept the others that the directory's owner waited for.
  @Test("An access to two items in a directory that another keeps gives way with both")
  func givesWayWithAll() throws {
    try scene.makeDirectory("d")
    let other = try scene.acquisition("d/b", .content).run()
    let requests = ["d/a", "d/b"].map { AccessRequest.writing(scene.url($0), []) }
    let terms = AccessTerms(
      purpose: "pair", term: .seconds(60), until: .now + .seconds(60))
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

  /// It used to be granted: items from before giving way were not examined again.
  @Test("An access that keeps contents again, after giving way, examines all of them again")
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
      Issue.record("nobody is left")
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
