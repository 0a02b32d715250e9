import AppGroup
import FoundationEssentials
import Synchronization
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import FileCoordination

/// The rules that Tests/Models/claims.pml and contents.pml find missing, in the code.
@Suite("The protocol of claims", .blocking)
struct ProtocolTests {
  let scene: ProtocolScene

  init() throws {
    scene = try ProtocolScene()
  }

  private static let most = 400

  /// Used to be lost: who looked where the directory is before looking for whoever claims its contents
  /// published into the old one.
  @Test("What is published is in the directory, whenever that is replaced meanwhile")
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
          // Somebody is inside: then it is not replaced.
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

  /// Used to end only by a deadline: the one inside gave way with the item it was waiting for, and kept
  /// the others that the directory's owner waited for.
  @Test("Who wants two items in a directory that another claims gives way with both")
  func givesWayWithAll() throws {
    try scene.makeDirectory("d")
    let other = try scene.acquisition("d/b", .writing([])).run()
    let requests = ["d/a", "d/b"].map { AccessRequest(scene.url($0), .writing([])) }
    let patience = Patience(deadline: .now + .seconds(60), cancellation: Cancellation())
    let pair = AccessOpening(
      requests,
      AccessOpening.Terms(
        client: FileCoordinator().client, purpose: ClaimName.purpose(of: "pair"),
        term: .seconds(60), patience: patience, durability: .standard))
    guard case .wait = try pair.step() else {
      Issue.record("the second item is in use")
      return
    }
    let owner = try scene.acquisition("d", .writing(.forDeleting), until: patience.deadline)
    #expect(try scene.isWaiting(owner))
    other.end()
    // Neither of them needs any time but to take steps.
    for _ in 0..<10 {
      _ = try pair.step()
      guard case .done(let access) = try owner.step() else { continue }
      access.end()
      try pair.run().abandon()
      #expect(try scene.names("d") == [])
      return
    }
    Issue.record("each of them waits for the other")
  }

  /// Used to be granted: what had been seen before giving way was not looked at again.
  @Test("Who claims contents again, after giving way, looks at all of them again")
  func looksAgain() throws {
    try scene.makeDirectory("o")
    try scene.makeDirectory("o/d")
    let idle = (0..<6).map { "o/d/\($0)" }
    for name in idle { _ = try ItemSite.openOrMake(try scene.location(name)) }
    let inside = try scene.acquisition("o/d/y", .writing([])).run()
    let far = ContinuousClock.now + .seconds(60)
    let owner = try scene.acquisition("o/d", .writing(.forDeleting), until: far)
    #expect(try scene.isWaiting(owner))
    var above: ItemAcquisition? = try scene.acquisition("o", .writing(.forDeleting), until: far)
    #expect(try above.map(scene.isWaiting) == true)
    #expect(try scene.isWaiting(owner))
    above = nil
    let began = try idle.map { try scene.acquisition($0, .writing([])).run() }
    inside.end()
    #expect(try scene.isWaiting(owner))
    for access in began { access.end() }
    guard case .done(let access) = try owner.step() else {
      Issue.record("nobody is left")
      return
    }
    access.end()
    #expect(try scene.names("o/d") == [])
  }

  /// Used to go on without a lock, for nobody to wait for, when the lock was freed in between.
  @Test("A reader has the item locked, whenever its owner leaves")
  func readerLocks() throws {
    try scene.write("old", "a")
    for number in 0..<Self.most {
      let owner = try scene.acquisition("a", .locking(isShared: false)).run()
      let hasMore = try scene.run(interruptedAt: number) {
        owner.end()
      } _: {
        do {
          let reader = try scene.acquisition("a", .reading([])).run()
          let file = try FileDescriptor.open(scene.directory.path + "/a", .readOnly)
          #expect(try !file.tryLock(.exclusive), "left at call \(number)")
          reader.end()
        } catch let error as FileCoordinationError where error.code == .timedOut {
          // It left too late.
          return
        }
      }
      owner.end()
      if !hasMore { return }
    }
    Issue.record("more than \(Self.most) calls")
  }

  /// Used to be left behind: the owner found the lease in use, and the one who had it gave up.
  @Test("Nothing is left when one gives up while the other leaves")
  func givesUp() throws {
    try scene.write("old", "a")
    for number in 0..<Self.most {
      let owner = try scene.acquisition("a", .writing([])).run()
      let hasMore = try scene.run(interruptedAt: number) {
        owner.end()
      } _: {
        do {
          try scene.acquisition("a", .writing([])).run().end()
        } catch let error as FileCoordinationError where error.code == .timedOut {
          // In the way of the other all the same, for a moment.
          return
        }
      }
      owner.end()
      #expect(try scene.names() == ["a"], "left at call \(number): \(scene.directory.listing)")
      if !hasMore { return }
    }
    Issue.record("more than \(Self.most) calls")
  }

  @Test("Nothing is left when one comes and gives up while the other leaves")
  func comesMeanwhile() throws {
    try scene.write("old", "a")
    let scene = scene
    for number in 0..<Self.most {
      let owner = try scene.acquisition("a", .writing([])).run()
      let hasMore = scene.run(interruptedAt: number) {
        do {
          try scene.acquisition("a", .writing([])).run().end()
        } catch {
          // It has come too early.
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
    /// Used to be left behind: a child that was being started still had the lease locked.
    @Test("Nothing is left when the lease stays locked for a moment and nobody is there")
    func lockedByNobody() throws {
      try scene.write("old", "a")
      let owner = try scene.acquisition("a", .writing([])).run()
      let tries = Mutex(0)
      // More than are made before there is another look.
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

  /// Used to stay until the access after the next one.
  @Test("Who drops what it waits for leaves nothing")
  func dropped() throws {
    try scene.makeDirectory("d")
    let inside = try scene.acquisition("d/x", .writing([])).run()
    var owner: ItemAcquisition? = try scene.acquisition(
      "d", .writing(.forDeleting), until: .now + .seconds(60))
    #expect(try owner.map(scene.isWaiting) == true)
    owner = nil
    #expect(try scene.names() == ["d"], "\(scene.directory.listing)")
    inside.end()
    #expect(try scene.names("d") == [])
  }
}
