import Testing
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A waiter for a lease", .blocking)
struct LeaseWaitingTests {
  let scene: LeaseScene
  let far = ContinuousClock.now + .seconds(30)

  init() throws { scene = try LeaseScene() }

  private func expectWaiting(_ request: LeaseRequest) throws {
    guard try LeaseScene.isWaiting(request) else {
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
  @Test("is woken when the lease is free, even the next holder's after a takeover")
  func isWoken() throws {
    let holder = try scene.acquire(term: .seconds(600))
    let waiting = try scene.request()
    try expectWaiting(waiting)
    try scene.move("held", to: "broken-b")
    waiting.latch.block(until: far)
    #expect(ContinuousClock.now < far, "a takeover wakes as well")
    holder.end()
    let next = try scene.acquire(term: .seconds(600))
    try expectWaiting(waiting)
    // Drains the remaining events of the old lease.
    waiting.latch.block(until: .now)
    try expectWaiting(waiting)
    next.end()
    waiting.latch.block(until: far)
    #expect(ContinuousClock.now < far)
    try LeaseScene.finish(waiting).end()
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }
}
