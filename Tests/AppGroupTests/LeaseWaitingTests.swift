import PropertyLists
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import AppGroup

@Suite("Who waits for a lease", .blocking)
struct LeaseWaitingTests {
  let scene: LeaseScene
  let far = ContinuousClock.now + .seconds(30)

  init() throws { scene = try LeaseScene() }

  private func expectWaiting(_ request: LeaseRequest) throws {
    guard case .wait = try request.attempt() else {
      Issue.record("the lease is held")
      return
    }
  }

  // holder            waiter                  next holder
  // holds             waits
  //                                           takes it away, holds
  //                   waits for the new one
  //                                           ends
  //                   is woken
  @Test("is woken when it is free, also that of the next holder after it was taken away")
  func isWoken() throws {
    let holder = try scene.acquire(.exclusive, term: .seconds(600))
    let waiting = try scene.request(.exclusive)
    try expectWaiting(waiting)
    try scene.move("held", to: "broken-b")
    waiting.latch.block(until: far)
    #expect(ContinuousClock.now < far, "its being taken away wakes as well")
    holder.end()
    let next = try scene.acquire(.exclusive, term: .seconds(600))
    try expectWaiting(waiting)
    // Whatever the old one still told.
    waiting.latch.block(until: .now)
    try expectWaiting(waiting)
    next.end()
    waiting.latch.block(until: far)
    #expect(ContinuousClock.now < far)
    try LeaseScene.finish(waiting).end()
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }

  @Test("puts its gate up again when somebody took it away")
  func gateAgain() throws {
    let reader = try scene.acquire(.shared)
    let waiting = try scene.request(.exclusive)
    try expectWaiting(waiting)
    let gate = try #require(try scene.names().first { $0.hasPrefix("waiting-") })
    try removeFile(scene.lease + "/" + gate)
    try expectWaiting(waiting)
    let again = try #require(try scene.names().first { $0.hasPrefix("waiting-") })
    #expect(again != gate)
    reader.end()
    try LeaseScene.finish(waiting).end()
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }

  @Test(
    "as a reader is kept out by no gate that is none", arguments: ["ln -s /etc/passwd", "mkfifo"])
  func plantedGate(command: String) throws {
    let plant = try ChildProcess("sh", ["-c", "\(command) '\(scene.lease)/waiting-a'"])
    #expect(try plant.wait(until: .now + .seconds(10)) == .exited(0))
    try scene.acquire(.shared).end()
    try scene.value.replace(with: 1)
    #expect(try scene.value.read() == 1)
  }
}
